/** What the model reads of programs that LibreChat's code tool and bash tool ran. */

import { slow } from "@svc/test-kit/jail/slowness";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { type Service, startService } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Conversation, type ConversationOptions } from "./support/conversation.ts";

let system: Service;

beforeAll(async () => {
  system = await startService({
    ...OPEN_LIMITS,
    SANDBOX_RUN_TIMEOUT: "6000",
    SANDBOX_RUN_MEMORY_LIMIT: "200mb",
  });
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const talk = (client: ConversationOptions["client"] = {}) => new Conversation({ url: system.url, client });

test.each([
  ["py", "import sys; print(sys.argv[1:], 6 * 7)", "['a b', '$c'] 42"],
  ["js", "console.log(process.argv.slice(2), 6 * 7)", "[ 'a b', '$c' ] 42"],
  ["ts", "const n: number = 42; console.log(process.argv.slice(2), n)", "[ 'a b', '$c' ] 42"],
  ["bash", 'printf "%s|" "$@" 42', "a b|$c|42|"],
])("a program in %s gets its arguments, and the model its output", async (lang, code, output) => {
  const reply = await talk().code(lang, code, ["a b", "$c"]);
  expect(reply.failed).toBe(false);
  expect(reply.text.trim()).toBe(`stdout:\n${output}`);
  expect(Object.keys(reply.artifact)).toEqual(["session_id"]);
});

test("the bash tool passes arguments on", async () => {
  const args = { command: 'printf "%s|" "$@"', args: ["a b", "$c", ""] };
  const [reply] = await talk().message([{ name: "bash_tool", args }]);
  expect(reply?.text).toBe("stdout:\na b|$c||");
});

test("both streams are shown, and a silent program is told to speak", async () => {
  const reply = await talk().bash("echo out; echo err >&2");
  expect(reply).toMatchObject({ text: "stdout:\nout\n\nstderr:\nerr", failed: false });
  expect((await talk().bash("true")).text).toMatch(/^stdout: Empty\./);
});

test("a failing program is an answer with its traceback", async () => {
  const reply = await talk().python("print('before')\nraise ValueError('no such thing')");
  expect(reply.failed).toBe(false);
  expect(reply.text).toContain("stdout:\nbefore\n");
  expect(reply.text).toMatch(/stderr:\nTraceback[\s\S]*line 2[\s\S]*ValueError: no such thing$/);
});

test("the model is told that a program ran out of time, and keeps what it printed", async () => {
  const reply = await talk().python("print('before', flush=True)\nwhile True: pass");
  expect(reply.text).toMatch(/^stdout:\nbefore\n\nstderr:\n\[sandbox\] Time limit exceeded \([\d.]+ s\)$/);
});

test("the model is told that a program ran out of memory", async () => {
  const reply = await talk().python("held = []\nwhile True: held.append(bytearray(10_000_000))");
  expect(reply.text).toMatch(/^stdout: Empty\.[\s\S]*stderr:\n\[sandbox\] Out of memory \(limit 200 MiB\)$/);
});

test("the model is told that its output was cut", async () => {
  const reply = await talk().python("print('x' * 70_000)");
  expect(reply.text).toMatch(
    /^stdout:\nx{65536}\nstderr:\n\[sandbox\] stdout length exceeded \(64 KiB kept of 70,001 bytes; write large results to a file\)$/,
  );
});

test("a plot that is only shown is delivered as an image", async () => {
  const chat = talk();
  const reply = await chat.python("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()");
  expect(reply.text).toContain(
    "Session files: 1 persisted file(s) are available in /mnt/data, including 1 image(s).",
  );
  expect(reply.artifact.files?.map(({ name }) => name)).toEqual(["plot_1.png"]);
});

test("a language that is not installed and arguments that are too many are refused as the model's mistake", async () => {
  for (const reply of [
    await talk().code("f90", "print *, 1"),
    await talk().code("py", "print(1)", Array(257).fill("x")),
  ]) {
    expect(reply.failed).toBe(true);
    expect(reply.text).toContain("The code execution request was rejected. Please check the tool input");
  }
});

test("the default profile is served, and a stateful one is named as what it is: not there", async () => {
  expect((await talk({ executionProfile: "default" }).bash("echo here")).text).toBe("stdout:\nhere");
  const reply = await talk({ executionProfile: "stateful" }).bash("echo here");
  expect(reply.failed).toBe(true);
  expect(reply.text).toContain("The selected environment does not provide the requested execution profile.");
});

test("a session that shall be continued on a warm machine runs on a new one", async () => {
  const chat = talk({ statefulSessions: true, runtimeSessionHint: "conversation:1" });
  await chat.bash("mkdir -p .cache; echo kept > .cache/x; echo file > x.txt");
  expect((await chat.bash("ls -A .cache || cat x.txt")).text).toContain("stdout:\nfile");
});

test("an attached workspace is named as what it is: not there", async () => {
  const chat = talk({ workspaceId: "project-1" });
  for (const reply of [await chat.bash("ls"), await chat.bashWithTools("ls")]) {
    expect(reply.failed).toBe(true);
    expect(reply.text).toContain("The selected worker does not provide a stateful workspace.");
  }
});

test("calls of one message run beside each other and do not see each other", async () => {
  const code = "import os, time\nopen('own.txt', 'x').close()\nprint(sorted(os.listdir()))";
  const replies = await talk().message([
    { name: "execute_code", args: { lang: "py", code } },
    { name: "bash_tool", args: { command: "ls" } },
    { name: "execute_code", args: { lang: "py", code } },
  ]);
  expect(replies.map(({ text }) => text.split("\n")[1])).toEqual([
    "['main.py', 'own.txt']",
    "script.sh",
    "['main.py', 'own.txt']",
  ]);
});

test("a command that the user stops is killed", async () => {
  const marker = newMarker();
  const stop = new AbortController();
  const reply = talk().bash(`exec -a ${marker} sleep 60`, stop.signal);
  await until(() => processesWith(marker).length > 0, slow(10_000));
  stop.abort();
  expect((await reply).text).toContain("aborted");
  await until(
    () => processesWith(marker).length === 0,
    slow(1500),
    () => processesWith(marker),
  );
});
