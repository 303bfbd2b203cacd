/** The suites of ./svc test: checks that pass or fail as a whole, and the vitest projects with their counts. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { NODE } from "../components.ts";
import { ROOT } from "../instance.ts";
import { shown } from "../system/run.ts";

export interface Outcome {
  name: string;
  passed: number;
  failed: number;
  seconds: number;
}

export const VITEST_PROJECTS = ["unit", "live", "e2e", "s3", "client"] as const;
export type VitestProject = (typeof VITEST_PROJECTS)[number];
/** What runs without a choice: the other projects need packages that nothing else does. */
export const USUAL_PROJECTS: readonly VitestProject[] = ["unit", "live", "e2e"];

const bin = (name: string) => join(ROOT, "node_modules/.bin", name);

const CHECKS = {
  "types (tsc)": [bin("tsc"), "--noEmit"],
  "lint (biome)": [bin("biome"), "ci", "--error-on-warnings", "."],
  "shell (shellcheck)": [
    "bash",
    "-c",
    'git ls-files -z | xargs -0 grep -lZE "^#!.*\\b(ba)?sh$" | xargs -0 shellcheck --external-sources',
  ],
  "jail (make check)": ["make", "--no-print-directory", "-C", "jail", "check"],
} as const satisfies Record<string, readonly string[]>;

export type CheckName = keyof typeof CHECKS;
export const CHECK_NAMES = Object.keys(CHECKS) as CheckName[];

export async function runCheck(name: CheckName): Promise<Outcome> {
  const { code, seconds } = await visibly(name, CHECKS[name]);
  return { name, passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, seconds };
}

/** A run that ends badly without a failed test, or that finds no test, counts as one failure. */
export async function runVitest(
  project: VitestProject,
  args: readonly string[],
  report: string,
): Promise<Outcome> {
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const filtered = args.length > 0 ? ["--passWithNoTests"] : [];
  const command = [
    NODE,
    join(ROOT, "node_modules/vitest/vitest.mjs"),
    "run",
    "--project",
    project,
    ...reporters,
    ...filtered,
    ...args,
  ];
  const { code, seconds } = await visibly(`tests (${project})`, command);
  const { passed, failed } = readReport(report);
  const bad = code !== 0 && failed === 0;
  return { name: `tests (${project})`, passed, failed: bad ? 1 : failed, seconds };
}

function readReport(path: string): { passed: number; failed: number } {
  try {
    const report = JSON.parse(readFileSync(path, "utf8")) as {
      numPassedTests: number;
      numFailedTests: number;
    };
    return { passed: report.numPassedTests, failed: report.numFailedTests };
  } catch {
    return { passed: 0, failed: 0 };
  }
}

async function visibly(
  title: string,
  command: readonly string[],
): Promise<{ code: number; seconds: number }> {
  console.log(`\n== ${title}: ${shown(command.map((word) => word.replace(`${ROOT}/`, "")))}`);
  const start = performance.now();
  const code = await new Promise<number>((resolve) => {
    const [file = "", ...args] = command;
    const child = spawn(file, args, { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
    child.once("error", () => resolve(127));
    child.once("close", (exit) => resolve(exit ?? 1));
  });
  return { code, seconds: (performance.now() - start) / 1000 };
}
