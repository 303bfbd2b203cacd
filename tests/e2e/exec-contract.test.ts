/** What a program gets and what its caller sees of it: languages, arguments, input, output, endings. */
import { createHash } from "node:crypto";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api, ID, output } from "@svc/test-kit/system/api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { describe, expect, test } from "vitest";

const CAP = 65_536;
/** In which Bash has started. */
const LIMIT_MS = slow(700);
const LIMIT = LIMIT_MS < 1000 ? `${LIMIT_MS} ms` : `${LIMIT_MS / 1000} s`;
const KILL_ABOVE = 64 * CAP;
const cutNote = (stream: string, total: number) =>
  `[sandbox] ${stream} length exceeded (64 KiB kept of ${total.toLocaleString("en-US")} bytes; write large results to a file)\n`;
const api = new Api(sharedSystem().url);

const PLAIN_END = { stderr: "", code: 0, signal: null, message: null, status: null };

describe("the answer", () => {
  test("has every field and no other", async () => {
    const answer = await api.exec({ lang: "py", code: "print('hello')" });
    expect(answer).toEqual({
      ...PLAIN_END,
      session_id: expect.stringMatching(ID),
      stdout: "hello\n",
      files: [],
      wall_time: expect.any(Number),
      cpu_time: expect.any(Number),
      memory: expect.any(Number),
      language: "python",
      limits: { run_timeout_ms: 60_000, memory_bytes: 512 << 20 },
      version: expect.stringMatching(/^3\.\d+\.\d+$/),
      timings: {
        queue_ms: expect.any(Number),
        setup_ms: expect.any(Number),
        run_ms: expect.any(Number),
        collect_ms: expect.any(Number),
      },
    });
    expect(Number.isInteger(answer.memory) && answer.memory > 0).toBe(true);
    expect(answer.wall_time).toBeGreaterThan(0);
    expect(answer.timings.run_ms).toBeGreaterThanOrEqual(answer.wall_time);
  });

  test("measures wall time, the processor time of all processes, and peak memory", async () => {
    const sleeper = await api.exec({ lang: "bash", code: "sleep 0.5" });
    expect(sleeper.wall_time).toBeGreaterThanOrEqual(500);
    expect(sleeper.cpu_time).toBeLessThan(400);
    const busy = await api.exec({
      lang: "py",
      code: `
import os, time
if os.fork() == 0:
    end = time.process_time() + 0.4
    while time.process_time() < end: pass
    os._exit(0)
os.wait()
kept = bytearray(100 << 20)
`,
    });
    expect(busy.cpu_time).toBeGreaterThanOrEqual(400);
    expect(busy.memory).toBeGreaterThan(100 << 20);
  });

  test("has a new session for each execution, also of the same program", async () => {
    const input = { lang: "bash", code: "true", session_id: "AAAAAAAAAAAAAAAAAAAAA", user_id: "somebody" };
    const [one, two] = [await api.exec(input), await api.exec(input)];
    expect(new Set([one.session_id, two.session_id, input.session_id]).size).toBe(3);
  });
});

describe("languages", () => {
  const PRINT: Record<string, [code: string, runner: string]> = {};
  for (const name of ["py", "python", "python3", "py3", "PYTHON"]) PRINT[name] = ["print(6 * 7)", "python"];
  for (const name of ["bash", "sh", "shell", "Bash"]) PRINT[name] = ["echo $((6 * 7))", "bash"];
  for (const name of ["js", "javascript", "mjs", "bun", "bun-js"])
    PRINT[name] = ["console.log(6 * 7)", "javascript"];
  for (const name of ["ts", "typescript", "bun-ts", "bun-typescript"])
    PRINT[name] = ["const n: number = 6 * 7; console.log(n)", "typescript"];
  for (const name of ["node", "nodejs", "node-js", "node-javascript"])
    PRINT[name] = ["console.log(6 * 7)", "node"];

  test.each(Object.entries(PRINT))("%s is known", async (lang, [code, language]) => {
    expect(await api.exec({ lang, code })).toMatchObject({ ...PLAIN_END, stdout: "42\n", language });
  });

  test("`language` is an alias of `lang`, which wins", async () => {
    expect(await api.exec({ language: "bash", code: "echo a" })).toMatchObject({ language: "bash" });
    expect(await api.exec({ lang: "bash", language: "py", code: "echo a" })).toMatchObject({
      language: "bash",
    });
  });

  test.each(["", "*", "x", "3", ">=3.9", "^3.0.0"])("version %j of Python is installed", async (version) => {
    expect(await api.exec({ lang: "py", version, code: "" })).toMatchObject(PLAIN_END);
  });

  test("the version that an answer names can be asked for, and so can its series", async () => {
    const { version } = await api.exec({ lang: "py", code: "" });
    for (const asked of [version, version.replace(/\.\d+$/, "")])
      expect(await api.exec({ lang: "py", version: asked, code: "" })).toMatchObject({
        ...PLAIN_END,
        version,
      });
  });

  test.each(["js", "ts", "node"])("%s mixes import, require and top-level await", async (lang) => {
    const code = `
import { readFileSync } from "node:fs";
const path = require("node:path");
const text = await Promise.resolve("awaited");
console.log(typeof readFileSync, path.basename("/a/b.txt"), text);
`;
    expect(await api.exec({ lang, code })).toMatchObject({
      ...PLAIN_END,
      stdout: "function b.txt awaited\n",
    });
    const common = `const os = require("os"); module.exports = {}; console.log(typeof os.cpus)`;
    expect(await api.exec({ lang, code: common })).toMatchObject({ ...PLAIN_END, stdout: "function\n" });
  });

  test("TypeScript has enums, namespaces and parameter properties", async () => {
    const code = `
enum Colour { Red = 1, Green }
namespace Box { export const size: number = 3 }
class Point { constructor(public readonly x: number, private y = 2) {} sum(): number { return this.x + this.y } }
console.log(Colour[2], Box.size, new Point(5).sum());
`;
    expect(await api.exec({ lang: "ts", code })).toMatchObject({ ...PLAIN_END, stdout: "Green 3 7\n" });
  });

  test.each(["py", "bash", "js", "ts", "node"])("an empty %s program ends well", async (lang) => {
    expect(await api.exec({ lang, code: "" })).toMatchObject({ ...PLAIN_END, stdout: "", files: [] });
  });

  test("user code is its own unit: future imports, line numbers, text over several lines", async () => {
    const code = `from __future__ import annotations\ntext = """a\n  b $& $1\n"""\nprint(repr(text), __name__, __file__)\n1/0\n`;
    const answer = await api.exec({ lang: "py", code });
    expect(answer.stdout).toBe("'a\\n  b $& $1\\n' __main__ /mnt/data/main.py\n");
    expect(answer.stderr).toContain('File "/mnt/data/main.py", line 6, in <module>');
    expect(answer.code).toBe(1);
  });
});

describe("arguments and input", () => {
  const ARGS = ["a b", "", "-c", "--help", "'\"`$(id)", "ünïcödé 🎈", "*", "line\nbreak", "\\"];
  const SHOW: [string, string][] = [
    ["py", "import sys, json; print(json.dumps(sys.argv[1:]))"],
    ["bash", `python3 -c 'import sys, json; print(json.dumps(sys.argv[1:]))' "$@"`],
    ["js", "console.log(JSON.stringify(process.argv.slice(2)))"],
    ["ts", "console.log(JSON.stringify(process.argv.slice(2)))"],
    ["node", "console.log(JSON.stringify(process.argv.slice(2)))"],
  ];

  test.each(SHOW)("%s gets its arguments as they were sent", async (lang, code) => {
    const answer = await api.exec({ lang, code, args: ARGS });
    expect(answer).toMatchObject(PLAIN_END);
    expect(JSON.parse(answer.stdout)).toEqual(ARGS);
  });

  test("stdin arrives byte for byte", async () => {
    const stdin = `\ufeffno line end at the end, ünïcödé 🎈, \0 and \r\n, ${"x".repeat(200_000)}`;
    const answer = await api.exec({ lang: "bash", code: "sha256sum; wc -c", stdin });
    expect(answer.stdout).toBe(`${createHash("sha256").update(stdin).digest("hex")}  -\n0\n`);
  });

  test.each([undefined, null, ""])("stdin %j is an end of file at once", async (stdin) => {
    const answer = await api.exec({ lang: "bash", code: "wc -c; read line || echo end", stdin });
    expect(answer).toMatchObject({ ...PLAIN_END, stdout: "0\nend\n" });
  });

  test("null counts as absent, and unknown fields are ignored", async () => {
    const nothing = { args: null, stdin: null, files: null, run_timeout: null, timeout: null, version: null };
    const answer = await api.exec({
      lang: "bash",
      language: null,
      code: "echo ok",
      ...nothing,
      surplus: { a: 1 },
    });
    expect(answer).toMatchObject({ ...PLAIN_END, stdout: "ok\n" });
  });
});

describe("output", () => {
  test("both streams are told apart; invalid bytes become replacement characters", async () => {
    const code = `printf 'out \\xff\\xfe ü\\n'; printf 'err \\xc3' >&2`;
    const answer = await api.exec({ lang: "bash", code });
    expect(answer).toMatchObject({ stdout: "out \ufffd\ufffd ü\n", stderr: "err \ufffd", status: null });
  });

  test.each([
    ["exactly the cap", CAP, null],
    ["one byte more", CAP + 1, "OL"],
    ["as much as is tolerated", KILL_ABOVE, "OL"],
  ])("stdout: %s ends by itself", async (_name, bytes, status) => {
    const answer = await api.exec({ lang: "py", code: `import sys\nsys.stdout.write("x" * ${bytes})` });
    expect(answer).toMatchObject({ status, code: 0, signal: null });
    expect(answer.stdout).toHaveLength(CAP);
    expect(answer.stderr).toBe(status === null ? "" : cutNote("stdout", bytes));
    expect(answer.message).toBe(status === null ? null : "stdout length exceeded");
  });

  test.each(["ü", "語", "🎈"])("a long stream is cut between characters: %s", async (character) => {
    const code = `import sys\nsys.stdout.write("a" + ${JSON.stringify(character)} * 70000)`;
    const { stdout, status } = await api.exec({ lang: "py", code });
    const size = Buffer.byteLength(character);
    expect(status).toBe("OL");
    expect(stdout).toBe(`a${character.repeat(Math.floor((CAP - 1) / size))}`);
  });

  test("stderr has the same cap, and its note comes behind it", async () => {
    const code = `import sys\nsys.stderr.write("e" * 100000)\nprint("still here")\nsys.exit(3)`;
    const answer = await api.exec({ lang: "py", code });
    expect(answer).toMatchObject({ status: "EL", code: 3, signal: null, message: "stderr length exceeded" });
    expect(answer.stderr).toBe(`${"e".repeat(CAP)}\n${cutNote("stderr", 100_000)}`);
    expect(answer.stdout).toBe("still here\n");
  });

  test("both streams over their caps: stdout is named, both leave their notes", async () => {
    const code = `import sys\nsys.stdout.write("o" * 70000)\nsys.stderr.write("e" * 70000)`;
    const answer = await api.exec({ lang: "py", code });
    expect(answer).toMatchObject({ status: "OL", code: 0 });
    expect(answer.stderr.slice(CAP)).toBe(`\n${cutNote("stdout", 70_000)}${cutNote("stderr", 70_000)}`);
  });

  test("a stream that is closed, or held by a child, does not matter", async () => {
    expect(await api.exec({ lang: "bash", code: "exec >&- 2>&-; echo lost; exit 4" })).toMatchObject({
      stdout: "",
      code: 4,
      status: null,
    });
    const answer = await api.exec({ lang: "bash", code: "echo first; (sleep 60; echo late) & exit 0" });
    expect(answer).toMatchObject({ ...PLAIN_END, stdout: "first\n" });
    expect(answer.wall_time).toBeLessThan(30_000);
  });
});

describe("endings", () => {
  test.each([0, 1, 2, 126, 127, 128, 137, 139, 143, 255])(
    "exit code %i is the program's own",
    async (code) => {
      const answer = await api.exec({ lang: "bash", code: `exit ${code}` });
      expect(answer).toMatchObject({ ...PLAIN_END, code });
    },
  );

  test.each([
    ["SIGSEGV", 11],
    ["SIGABRT", 6],
    ["SIGKILL", 9],
    ["SIGTERM", 15],
    ["SIGPIPE", 13],
    ["SIGFPE", 8],
  ])("a program that ends by %s is told so", async (signal, number) => {
    const code = `import os, signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nprint("before", flush=True)\nos.kill(os.getpid(), ${number})`;
    expect(await api.exec({ lang: "py", code })).toMatchObject({
      stdout: "before\n",
      stderr: `[sandbox] Killed by signal ${signal}\n`,
      code: 128 + number,
      signal,
      status: "SG",
      message: `Killed by signal ${signal}`,
    });
  });

  test("a crash keeps what was printed and the files that were written", async () => {
    const answer = await api.exec({
      lang: "py",
      code: `open("kept.txt", "w").write("kept")\nprint("printed")\nraise SystemError("broken")`,
    });
    expect(answer).toMatchObject({ stdout: "printed\n", code: 1, status: null });
    expect(answer.stderr).toContain("SystemError: broken");
    expect((await api.bytes(output(answer, "kept.txt"))).toString()).toBe("kept");
  });

  test.each([
    ["run_timeout", { run_timeout: LIMIT_MS }],
    ["timeout", { timeout: LIMIT_MS }],
    ["run_timeout before timeout", { run_timeout: LIMIT_MS, timeout: 60_000 }],
  ])("the time limit is given by %s", async (_name, limit) => {
    const answer = await api.exec({ lang: "bash", code: "echo started; sleep 30", ...limit });
    expect(answer).toMatchObject({
      stdout: "started\n",
      stderr: `[sandbox] Time limit exceeded (${LIMIT})\n`,
      status: "TO",
      code: 137,
      signal: "SIGKILL",
      message: "Time limit exceeded",
    });
    expect(answer.wall_time).toBeGreaterThanOrEqual(LIMIT_MS);
  });

  test("a time limit above the ceiling is lowered, not refused", async () => {
    expect(await api.exec({ lang: "bash", code: "true", run_timeout: 10 ** 12 })).toMatchObject(PLAIN_END);
  });
});
