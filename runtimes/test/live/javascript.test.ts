import { describe, expect, it } from "vitest";
import { type Program, run } from "./support/program.ts";

describe.each(["javascript", "node"])("a %s program", (language) => {
  const script = (code: string, job: Partial<Program> = {}) => run(language, { code, ...job });

  it("runs as a plain index.js with its arguments, its standard input and its exit code", async () => {
    const outcome = await script(
      "const fs = require('fs');\nconsole.log(process.argv.slice(1), fs.readFileSync(0, 'utf8'), typeof module.exports, require.main === module);\nprocess.exitCode = 7;",
      { args: ["a b", "ü"], stdin: "☃" },
    );
    expect(outcome).toMatchObject({
      stdout: "[ '/mnt/data/index.js', 'a b', 'ü' ] ☃ object true\n",
      stderr: "",
      exitCode: 7,
    });
  });

  it.each([
    ["require", "const { join } = require('path'); console.log(join('a', 'b'));"],
    ["import", "import { join } from 'node:path'; console.log(join('a', 'b'));"],
    ["top-level await", "const { join } = await import('path'); console.log(join('a', 'b'));"],
    ["import and require", "import 'fs'; const { join } = require('path'); console.log(join('a', 'b'));"],
    ["require and top-level await", "const { join } = require('path'); console.log(await join('a', 'b'));"],
    ["all three", "import 'fs'; const { join } = require('path'); await null; console.log(join('a', 'b'));"],
    [
      "import and a require of its own",
      "import { createRequire } from 'module'; const require = createRequire(import.meta.url); console.log(require('path').join('a', 'b'));",
    ],
    [
      "import and a main guard",
      "import { join } from 'path'; if (require.main === module) console.log(join('a', 'b'));",
    ],
    [
      "import and module.exports",
      "import { join } from 'path'; module.exports = { join }; console.log(module.exports.join('a', 'b'));",
    ],
    [
      "import and __dirname",
      "import { join } from 'path'; if (__dirname === '/mnt/data' && __filename === '/mnt/data/index.js') console.log(join('a', 'b'));",
    ],
  ])("may use %s", async (_name, code) => {
    expect(await script(code)).toMatchObject({ stdout: "a/b\n", stderr: "", exitCode: 0 });
  });

  it("that throws shows its line and ends with exit code 1", async () => {
    const { stderr, exitCode } = await script(
      "import 'fs';\n\nfunction fail() { throw new TypeError('bad'); }\nfail();",
    );
    expect(stderr).toMatch(/\/mnt\/data\/index\.js:3\n/);
    expect(stderr).toMatch(/TypeError: bad\n {4}at fail \(file:\/\/\/mnt\/data\/index\.js:3:25\)/);
    expect(exitCode).toBe(1);
  });

  it("that does not parse shows its line and ends with exit code 1", async () => {
    const { stderr, exitCode } = await script("const a = 1;\nconst = 2;\n");
    expect(stderr).toMatch(/^\/mnt\/data\/index\.js:2\nconst = 2;\n/);
    expect(stderr).toContain("SyntaxError: Unexpected token '='");
    expect(exitCode).toBe(1);
  });

  it("loads neighbours of both kinds, each with its own names", async () => {
    const { stdout, stderr } = await script(
      "import { where } from './lib/esm.js'; import both from './lib/cjs.js'; console.log(where, both, __dirname, require('./lib/cjs.js') === both);",
      {
        files: {
          "lib/esm.js": "export const where = [__dirname, require('./cjs.js').name];",
          "lib/cjs.js": "exports.name = __filename;",
        },
      },
    );
    expect(stderr).toBe("");
    expect(stdout).toBe(
      "[ '/mnt/data/lib', '/mnt/data/lib/cjs.js' ] { name: '/mnt/data/lib/cjs.js' } /mnt/data true\n",
    );
  });
});

describe("Node.js in the image", () => {
  const script = (code: string, job: Partial<Program> = {}) => run("javascript", { code, ...job });

  it("keeps standard error for the program: no warnings about module types or experiments", async () => {
    const { stdout, stderr } = await script(
      "import { DatabaseSync } from 'node:sqlite';\nconst db = new DatabaseSync(':memory:');\nconsole.log(db.prepare('select 6*7 as n').get().n);",
      { files: { "package.json": "{}" } },
    );
    expect({ stdout, stderr }).toEqual({ stdout: "42\n", stderr: "" });
  });

  it("lets a program see its own warnings", async () => {
    expect((await script("process.emitWarning('mine');")).stderr).toContain("Warning: mine");
  });

  it("leaves the names of CommonJS files and of the global object's listing alone", async () => {
    const { stdout } = await script(
      "console.log(Object.keys(globalThis).includes('require'), require.cache[__filename] === module, arguments.length);",
    );
    expect(stdout).toBe("false true 5\n");
  });

  it("lets a program define the names itself", async () => {
    const { stdout, stderr } = await script(
      "import 'fs';\nglobalThis.require = () => 'mine';\nglobalThis.__filename = 'f';\nconsole.log(require('x'), __filename);",
    );
    expect({ stdout, stderr }).toEqual({ stdout: "mine f\n", stderr: "" });
  });

  it("starts workers, forks and child processes", async () => {
    const { stdout, stderr, exitCode } = await script(
      [
        "import { Worker } from 'node:worker_threads';",
        "import { fork, execFileSync } from 'node:child_process';",
        "import { once } from 'node:events';",
        "const worker = new Worker('require(\"worker_threads\").parentPort.postMessage(1)', { eval: true });",
        "console.log((await once(worker, 'message'))[0]);",
        "console.log((await once(fork('./child.js'), 'message'))[0]);",
        "console.log(execFileSync('python3', ['-c', 'print(3)']).toString().trim());",
      ].join("\n"),
      { files: { "child.js": "import 'fs'; process.send(require('path').sep.length + 1);" } },
    );
    expect({ stdout, stderr, exitCode }).toEqual({ stdout: "1\n2\n3\n", stderr: "", exitCode: 0 });
  });

  it("knows languages and time zones", async () => {
    const { stdout } = await script(
      "console.log((1234.5).toLocaleString('de-DE'), new Date(0).toLocaleString('en-GB', { timeZone: 'Europe/Berlin' }));",
    );
    expect(stdout).toBe("1.234,5 01/01/1970, 01:00:00\n");
  });
});
