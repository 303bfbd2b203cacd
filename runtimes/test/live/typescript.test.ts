import { describe, expect, it } from "vitest";
import { type Program, run } from "./support/program.ts";

const script = (code: string, job: Partial<Program> = {}) => run("typescript", { code, ...job });

describe("a TypeScript program", () => {
  it("gets its arguments, its standard input and its exit code", async () => {
    const outcome = await script(
      "import { readFileSync } from 'fs';\nconst args: string[] = process.argv.slice(1);\nconsole.log(args, readFileSync(0, 'utf8'));\nprocess.exit(7);",
      { args: ["a b", "ü"], stdin: "☃" },
    );
    expect(outcome).toMatchObject({
      stdout: "[ '/mnt/data/main.ts', 'a b', 'ü' ] ☃\n",
      stderr: "",
      exitCode: 7,
    });
  });

  it.each([
    ["enums", "enum E { a = 1, b } const enum C { x = 5 } console.log(E.b + C.x + E[1].length);"],
    ["namespaces", "namespace N { export const x: number = 8 } console.log(N.x);"],
    [
      "parameter properties",
      "class P { constructor(private readonly x: number) {} get() { return this.x } } console.log(new P(8).get());",
    ],
    [
      "decorators",
      "function twice(method: (n: number) => number, _: ClassMethodDecoratorContext) { return function (this: unknown, n: number) { return 2 * method.call(this, n); }; }\nclass D { @twice f(n: number) { return n } } console.log(new D().f(4));",
    ],
    [
      "generics, satisfies and casts",
      "const f = <T,>(x: T): T => x; const y = { v: 8 } satisfies { v: number }; console.log(f(y).v as number);",
    ],
    [
      "overloads, abstract classes and declare",
      "declare const q: string; abstract class A { abstract x: number } class B extends A { x = 8 } console.log(new B().x);",
    ],
    ["a type error", "const x: string = 8; console.log(x);"],
  ])("may use %s", async (_name, code) => {
    expect(await script(code)).toMatchObject({ stdout: "8\n", stderr: "", exitCode: 0 });
  });

  it.each([
    ["require", "const { join } = require('path'); console.log(join('a', 'b'));"],
    ["import", "import { join } from 'node:path'; console.log(join('a', 'b'));"],
    ["import =", "import path = require('path'); console.log(path.join('a', 'b'));"],
    ["top-level await", "const { join } = await import('path'); console.log(join('a', 'b'));"],
    ["all three", "import 'fs'; const { join } = require('path'); await null; console.log(join('a', 'b'));"],
    [
      "import and a main guard",
      "import { join } from 'path'; if (require.main === module) console.log(join('a', 'b'));",
    ],
    [
      "import and __dirname",
      "import { join } from 'path'; if (__dirname === '/mnt/data') console.log(join('a', 'b'));",
    ],
  ])("may use %s", async (_name, code) => {
    expect(await script(code)).toMatchObject({ stdout: "a/b\n", stderr: "", exitCode: 0 });
  });

  it.each(["./lib", "./lib.ts", "./lib.js"])("imports a neighbour as %s", async (specifier) => {
    const { stdout, stderr } = await script(
      `import value, { type T } from '${specifier}';\nconst x: T = value;\nconsole.log(x);`,
      {
        files: { "lib.ts": "export type T = number;\nenum E { a = 8 }\nexport default E.a as T;" },
      },
    );
    expect({ stdout, stderr }).toEqual({ stdout: "8\n", stderr: "" });
  });

  it("imports folders, JSON, JavaScript and CommonJS TypeScript", async () => {
    const { stdout, stderr } = await script(
      "import { a } from './dir'; import data from './data.json'; import { c } from './plain'; import old from './old'; console.log(a, data.b, c, old.d, require('./data.json').b);",
      {
        files: {
          "dir/index.ts": "export const a: number = 1;",
          "data.json": '{"b": 2}',
          "plain.js": "export const c = 3;",
          "old.ts": "const d: number = 4; export = { d };",
        },
      },
    );
    expect({ stdout, stderr }).toEqual({ stdout: "1 2 3 4 2\n", stderr: "" });
  });

  it("that throws shows the line of its source and ends with exit code 1", async () => {
    const { stderr, exitCode } = await script(
      "interface Unused {\n  a: string;\n}\n\nenum E { a }\nimport './helper';\nfunction fail(x: number): never {\n  throw new TypeError('bad ' + x);\n}\nfail(E.a);",
      { files: { "helper.ts": "export {};" } },
    );
    expect(stderr).toMatch(/^\/mnt\/data\/main\.ts:8\n/);
    expect(stderr).toMatch(
      /TypeError: bad 0\n {4}at fail \(.*\/mnt\/data\/main\.ts:8:9\)\n {4}at .*\/mnt\/data\/main\.ts:10:1/,
    );
    expect(exitCode).toBe(1);
  });

  it("that does not parse says where and why and ends with exit code 1", async () => {
    const { stdout, stderr, exitCode } = await script("console.log('never');\nconst x: number = ;\n");
    expect(stderr).toMatch(/\[ERROR\] Unexpected ";"\n\n {4}main\.ts:2:18:\n/);
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 1 });
  });

  it("reports a neighbour that is not there", async () => {
    const { stderr, exitCode } = await script("import { x } from './absent';\nconsole.log(x);");
    expect(stderr).toMatch(/Cannot find module '\/mnt\/data\/absent' imported from \/mnt\/data\/main\.ts/);
    expect(exitCode).toBe(1);
  });

  it("respects the decorators that a tsconfig.json asks for", async () => {
    const { stdout, stderr } = await script(
      "function mark(_: unknown, key: string, index: number) { console.log(key, index); }\nclass A { f(@mark x: number) { return x } }",
      { files: { "tsconfig.json": '{ "compilerOptions": { "experimentalDecorators": true } }' } },
    );
    expect({ stdout, stderr }).toEqual({ stdout: "f 0\n", stderr: "" });
  });

  it("leaves nothing in the workspace", async () => {
    const { stdout } = await script("enum E { a } console.log(E.a, require('fs').readdirSync('.'));");
    expect(stdout).toBe("0 [ 'main.ts' ]\n");
  });
});
