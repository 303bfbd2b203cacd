/** Packages use each other by name alone, and what operators run uses nothing of the tests and tools. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { describe, expect, test } from "vitest";

const FOLDERS = "{packages,services,cli,runtimes,tests,tools}";
const find = (pattern: string) =>
  globSync(`${FOLDERS}/**/${pattern}`, { cwd: ROOT, exclude: ["**/node_modules"] });

const PACKAGES = find("package.json").map(dirname);
const FILES = find("*.ts");
const PRODUCTION = /^(packages\/(?!test-kit\/)[^/]+|services\/[^/]+|cli)\/src\/|^runtimes\/(?!test\/)/;
const FOR_TESTS = /^@svc\/(test-kit|tests|tools)(\/|$)/;

/** The innermost package that a file lies in; none outside of all. */
function packageOf(path: string): string | undefined {
  return PACKAGES.filter((folder) => path.startsWith(`${folder}/`)).sort((a, b) => b.length - a.length)[0];
}

const importsOf = (text: string) =>
  [...text.matchAll(/\b(?:from |import |import\()"([^"\n]+)"/g)].map(([, name = ""]) => name);

function leavesItsPackage(file: string, name: string): boolean {
  return name.startsWith(".") && packageOf(join(dirname(file), name)) !== packageOf(file);
}

const imports = FILES.flatMap((file) =>
  importsOf(readFileSync(join(ROOT, file), "utf8")).map((name) => ({ file, name })),
);

describe("imports", () => {
  test("are found, and the packages that they are in", () => {
    expect(PACKAGES.length).toBeGreaterThan(15);
    expect(imports.length).toBeGreaterThan(2000);
    expect(imports.filter(({ file }) => PRODUCTION.test(file)).length).toBeGreaterThan(1000);
    expect(importsOf('import { a } from "./a.ts";\nimport "./b.ts";\nawait import("./c.ts");')).toEqual([
      "./a.ts",
      "./b.ts",
      "./c.ts",
    ]);
    expect(leavesItsPackage("cli/src/main.ts", "./commands.ts")).toBe(false);
    expect(leavesItsPackage("cli/src/main.ts", "../../tools/src/bench/command.ts")).toBe(true);
    expect(leavesItsPackage("tests/client/exec.test.ts", "../e2e/support/svc.ts")).toBe(true);
  });

  test("by path stay in their package", () => {
    expect(imports.filter(({ file, name }) => leavesItsPackage(file, name))).toEqual([]);
  });

  test("of what operators run name no tests and tools", () => {
    expect(imports.filter(({ file, name }) => PRODUCTION.test(file) && FOR_TESTS.test(name))).toEqual([]);
  });
});
