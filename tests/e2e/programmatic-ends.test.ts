/** How programs with tools end, and what their callers are told; large and unusual values on the way. */

import { Api } from "@svc/test-kit/system/api";
import { declare, drive, served, type Tools, tryStart } from "@svc/test-kit/system/programmatic";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { describe, expect, test } from "vitest";

const ECHO = { echo: ({ value }) => value } satisfies Tools;

const api = new Api(sharedSystem().url);

const NOTES = {
  timeout: "Time limit exceeded (1.5 s)",
  memory_limit: "Out of memory (limit 512 MiB)",
  signal: "Killed by signal SIGSEGV",
};

describe.each(["before its first call", "after a call"])("a program that ends %s", (when) => {
  const first = when === "after a call" ? 'print(await echo(value="x"), flush=True)\n' : "";
  const stdout = first === "" ? "" : "x\n";
  const calls = first === "" ? 0 : 1;

  test.each([
    ["its time limit", "while True: pass", "timeout", "Time limit exceeded", 137, "SIGKILL", "TO"],
    ["its memory limit", "x = bytearray(600 << 20)", "memory_limit", "Out of memory", 137, "SIGKILL", "ML"],
    ["a signal", "os.kill(os.getpid(), 11)", "signal", "Sandbox exited with code 139", 139, "SIGSEGV", "SG"],
  ])("by %s", async (_, last, error_type, error, code, signal, sandbox_status) => {
    const note = new Map(Object.entries(NOTES)).get(error_type) ?? error;
    const source = `${first}open("made.txt", "w").write("x")\n${last}`;
    const { answer } = await drive(
      api,
      { code: source, timeout: error_type === "timeout" ? 1500 : 60_000 },
      ECHO,
    );
    expect(answer).toMatchObject({
      status: "error",
      error_type,
      error,
      code,
      signal,
      sandbox_status,
      stdout,
    });
    expect(answer).toMatchObject({ tool_calls_made: calls, stderr: `[sandbox] ${note}\n` });
    expect(answer.files.map(({ name }) => name)).toEqual(["made.txt"]);
  });

  test("by its own exit code", async () => {
    const { answer } = await drive(api, { code: `${first}print("bad", file=sys.stderr)\nsys.exit(7)` }, ECHO);
    const end = { status: "error", error_type: "nonzero_exit", error: "Sandbox exited with code 7", code: 7 };
    expect(answer).toMatchObject({ ...end, stdout, stderr: "bad\n", signal: null, sandbox_status: null });
  });

  test("by far too much output", async () => {
    const code = `${first}while True: sys.stdout.write("y" * 65536)`;
    const { answer } = await drive(api, { code }, ECHO);
    expect(answer).toMatchObject({ status: "error", error_type: "output_limit", sandbox_status: "OL" });
    expect(answer).toMatchObject({ error: "stdout length exceeded", code: 137, signal: "SIGKILL" });
    expect(answer.stdout).toBe((stdout + "y".repeat(65_536)).slice(0, 65_536));
  });

  test("with output that was cut", async () => {
    const code = `${first}print("é" * 50000)\nprint("end")`;
    const { answer } = await drive(api, { code }, ECHO);
    expect(answer).toMatchObject({ status: "completed", code: 0, sandbox_status: "OL" });
    expect(answer.stderr).toMatch(
      /^\[sandbox\] stdout length exceeded \(64 KiB kept of [\d,]+ bytes; [^\n]*\n$/,
    );
    expect(answer.stdout).toBe(stdout + "é".repeat(32_768 - stdout.length / 2));
  });

  test("well, without anything to say", async () => {
    const { answer } = await drive(api, { code: `${first}pass` }, ECHO);
    expect(answer).toMatchObject({ status: "completed", stdout, stderr: "", files: [], code: 0 });
    expect(answer.tool_calls_made).toBe(calls);
  });
});

test("output that is cut between pauses stays cut at the same place", async () => {
  const code = `print("a" * 40000)
await echo(value=1)
print("b" * 40000)
await echo(value=2)
print("c" * 40000)`;
  const { answer, pauses } = await drive(api, { code }, ECHO);
  const all = `${"a".repeat(40_000)}\n${"b".repeat(40_000)}`.slice(0, 65_536);
  expect(answer).toMatchObject({ status: "completed", stdout: all, sandbox_status: "OL" });
  expect(pauses.map(({ partial_stdout }) => partial_stdout)).toEqual([`${"a".repeat(40_000)}\n`, all]);
});

test("a program that does not compile says where", async () => {
  const answer = await served(() => tryStart(api, { code: 'print("x")\nawait (', tools: declare(["echo"]) }));
  expect(answer).toMatchObject({
    status: "error",
    error_type: "nonzero_exit",
    stdout: "",
    tool_calls_made: 0,
  });
  expect(answer.status === "error" && answer.stderr).toMatch(
    /File "\/mnt\/data\/main\.py", line 2\n.*SyntaxError/s,
  );
});

test("an undeclared tool ends the program, whatever it catches", async () => {
  const code = `import socket
await echo(value=1)
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["SANDBOX_TOOL_SOCKET"])
body = b'{"tool_name":"other \\\\u2028 tool","input":{}}'
s.sendall(b"POST /tool-call HTTP/1.1\\r\\nHost: t\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
print(s.recv(1000))
while True: pass`;
  const { answer } = await drive(api, { code }, ECHO);
  const text = "Sandbox requested an unregistered tool: other \u2028 tool";
  expect(answer).toMatchObject({ status: "error", error_type: "unregistered_tool", error: text, stdout: "" });
  expect(answer.stderr).toBe(`[sandbox] ${text}\n`);
});

test("arguments of 1 MB and results of 5 MB go through whole; larger arguments fail inside the program", async () => {
  const code = `big = "é" * 500000
r = await size(text=big)
print(r["n"], len(r["text"]), r["text"] == "ü" * 2490000)
try:
    await size(text=big + "x" * 100000)
except ToolExecutionError as e:
    print("too large", e.tool_name)
print((await size(text="x"))["n"])`;
  const tools: Tools = {
    size: ({ text }) => ({ n: text.length, text: "ü".repeat(text.length > 1 ? 2_490_000 : 0) }),
  };
  const { answer, batches } = await drive(api, { code }, tools);
  expect(answer).toMatchObject({ status: "completed", stderr: "" });
  expect(answer.stdout).toBe("500000 2490000 True\ntoo large size\n1\n");
  expect(batches).toHaveLength(2);
});

test("a hundred tools with unusual names come back under their own names", async () => {
  const names = [
    "get-weather",
    "class",
    "2nd tool",
    "print",
    "données",
    ...Array.from({ length: 95 }, (_, i) => `t.${i}`),
  ];
  const code = `rs = await asyncio.gather(get_weather(), class_tool(), _2nd_tool(), print(), donnes(), t94(x=1))
sys.stdout.write(json.dumps(rs))`;
  const tools = Object.fromEntries(names.map((name) => [name, () => name]));
  const { answer, batches } = await drive(api, { code }, tools);
  const called = ["get-weather", "class", "2nd tool", "print", "données", "t.94"];
  expect(answer).toMatchObject({ status: "completed", stderr: "" });
  expect(JSON.parse(answer.stdout)).toEqual(called);
  expect(batches).toEqual([called]);
});

test("arguments and standard input of a program are its own through all rounds", async () => {
  const start = { args: ["a b", "$&"], stdin: "one\ntwo\n", tools: declare(["echo"]) };
  const code = `print(sys.argv[1:], input())
await echo(value=1)
print(input())`;
  const { answer } = await drive(api, { ...start, code }, ECHO);
  expect(answer).toMatchObject({ status: "completed", stdout: "['a b', '$&'] one\ntwo\n" });
  const script = `read -r line; echo "$# $1 $2 $line"
r=$(echo_tool '{"value":"$&"}'); echo "$r"
read -r line; echo "$line"`;
  const bash = await drive(api, { ...start, lang: "sh", code: script, tools: declare(["echo"]) }, ECHO);
  expect(bash.answer).toMatchObject({ status: "completed", stdout: '2 a b $& one\n"$&"\ntwo\n', stderr: "" });
});

test.each([
  ["python", "print(1 + 1)\nprint('search' in globals())", "2\nFalse\n"],
  ["bash", "echo $((1 + 1)); type search 2>/dev/null || echo none", "2\nnone\n"],
])("a %s program without tools runs and completes", async (lang, code, stdout) => {
  const { answer, pauses } = await drive(api, { lang, code, tools: [] }, {});
  expect(answer).toMatchObject({ status: "completed", stdout, stderr: "", tool_calls_made: 0 });
  expect(pauses).toEqual([]);
});
