/**
 * Answers with events as a caller sees them: each event as the program writes it, and together exactly the answer that the same run
 * gives without events. What breaks in the middle is in streams-faults.test.ts.
 */

import type { ExecResponse } from "@svc/contracts";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api, type ExecInput } from "@svc/test-kit/system/api";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { sharedSystem } from "@svc/test-kit/system/shared";
import {
  joined,
  namesOf,
  openStream,
  resultOf,
  type StreamEvent,
  streamed,
} from "@svc/test-kit/system/streams";
import { describe, expect, test } from "vitest";
import { svc } from "./support/svc.ts";

const system = sharedSystem();
const { url } = system;
const api = new Api(url);
const APPEAR_MS = slow(20_000);
const newKey = () => `stream-${Math.random()}`;

/** A run to its end; its outputs are what its answer says. */
async function run(input: ExecInput): Promise<{ events: StreamEvent[]; result: ExecResponse }> {
  const events = await streamed(url, input);
  const result = resultOf<ExecResponse>(events);
  expect(joined(events, "stdout")).toBe(result.stdout);
  expect(joined(events, "stderr")).toBe(result.stderr);
  return { events, result };
}

/** The API's line of a request. */
async function requestLine(id: string): Promise<Record<string, unknown> | undefined> {
  const { stdout } = await svc(["logs", "--json", "--request", id, "api"], system.environment);
  const lines = stdout.split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === "request");
}

const languages = {
  py: 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nopen("made.txt", "w").write("1")',
  bash: "echo out; echo err >&2; echo 1 > made.txt",
  js: 'console.log("out"); console.error("err"); require("fs").writeFileSync("made.txt", "1")',
  node: 'console.log("out"); console.error("err"); require("fs").writeFileSync("made.txt", "1")',
  ts: 'import { writeFileSync } from "node:fs";\nconst text: string = "out";\nconsole.log(text); console.error("err"); writeFileSync("made.txt", "1")',
};

test.each(Object.entries(languages))(
  "%s: started, the outputs, its files, the answer",
  async (lang, code) => {
    const { events, result } = await run({ lang, code });
    expect(result).toMatchObject({ stdout: "out\n", stderr: "err\n", code: 0 });
    const names = namesOf(events);
    expect([names[0], ...names.slice(-2)]).toEqual(["started", "file", "result"]);
    expect(new Set(names.slice(1, -2))).toEqual(new Set(["stdout", "stderr"]));
    const { session_id, language, version } = result;
    expect(events[0]?.data).toEqual({ session_id, language, version });
    expect(events.at(-2)?.data).toEqual(result.files[0]);
  },
);

test("the answer is the one of a run without events", async () => {
  const input = { lang: "py", code: "print(1)", args: ["a"] };
  const [{ result }, plain] = [await run(input), await api.exec(input)];
  expect(Object.keys(result).sort()).toEqual(Object.keys(plain).sort());
  expect(result).toMatchObject({ stdout: plain.stdout, limits: plain.limits, version: plain.version });
});

describe.each(["warm", "cold", "with tools"])("a line of Python (%s)", (start) => {
  test("comes while the program waits for its next one", async () => {
    const marker = newMarker();
    const code = `import time, sys\nprint("first")\nsys.stdout.write("half")\ntime.sleep(60)`;
    const cold = start === "cold" ? { env: { PYTHONOPTIMIZE: "1" } } : {};
    const path = start === "with tools" ? "/exec/programmatic" : "/exec";
    const tools = start === "with tools" ? { tools: [{ name: "ask" }] } : { lang: "py" };
    const answer = await openStream(url, path, { code, args: [marker], ...tools, ...cold });
    await answer.until(({ event }) => event === "stdout");
    expect(answer.events.map(({ event }) => event)).toEqual(["started", "stdout"]);
    expect(answer.events[1]?.data.text).toMatch(/^first\n/);
    expect(processesWith(marker).length).toBeGreaterThan(0);
    answer.leave();
    await until(() => processesWith(marker).length === 0, APPEAR_MS);
  });
});

test("a program is run in the same way with events and without", async () => {
  const code = `import os, sys
print(sys.stdout.line_buffering, sys.stdout.write_through, sys.argv, sys.flags, sorted(os.environ.items()))`;
  const input = { lang: "py", code, args: ["a"] };
  expect((await run(input)).result.stdout).toBe((await api.exec(input)).stdout);
});

describe("what is written comes whole", () => {
  test("in both outputs by turns", async () => {
    const code = `import os\nfor i in range(2000):\n  os.write(1, b"o%d\\n" % i)\n  os.write(2, b"e%d\\n" % i)`;
    const { result } = await run({ lang: "py", code });
    expect(result.stdout.split("\n").length).toBe(2001);
    expect(result.stderr.split("\n").length).toBe(2001);
  });

  test("in bytes that are no text, and in characters that are written in pieces", async () => {
    const code = `import os, random, time
random.seed(7)
pool = bytes.fromhex("41 80 bf c0 c3 a9 e2 82 ac ed a0 f0 9f 98 80 f4 90 f5 ff ef bb bf")
for i in range(300):
  os.write(1, bytes(random.choice(pool) for _ in range(random.randrange(1, 40))))
  if i % 30 == 0: time.sleep(0.03)
for byte in "🎈é語".encode():
  os.write(1, bytes([byte])); time.sleep(0.03)`;
    const { result, events } = await run({ lang: "py", code });
    expect(result.stdout.endsWith("🎈é語")).toBe(true);
    for (const { data } of events.filter(({ event }) => event === "stdout"))
      expect(data.text.isWellFormed()).toBe(true);
  });

  test.each(["ff", "c0", "e2", "e28", "f0", "f09f98", "80", "f5", "eda0"])(
    "beyond the limit of output, which ends within the bytes %s",
    async (tail) => {
      const hex = tail.length % 2 ? `${tail}2` : tail;
      const max = 1024 * 1024;
      const code = `import os, time
tail = bytes.fromhex("${hex}")
out = b"a" * (${max} - len(tail)) + tail + b"a" * 100
for at in range(0, len(out), 60000):
  os.write(1, out[at:at+60000])
time.sleep(0.1)`;
      const { result } = await run({ lang: "py", code });
      expect(result.stdout.length).toBeGreaterThan(60_000);
    },
  );

  test("beyond what ends a program", async () => {
    const { result } = await run({ lang: "bash", code: "yes" });
    expect([result.status, result.stderr]).toEqual(["OL", expect.stringContaining("[sandbox]")]);
  });

  test("until a time limit", async () => {
    const code = 'import time\nprint("begun", flush=True)\ntime.sleep(60)';
    const { result } = await run({ lang: "py", code, run_timeout: 500 });
    expect(result).toMatchObject({ stdout: "begun\n", status: "TO" });
    expect(result.stderr).toContain("[sandbox] Time limit");
  });

  test("that looks like events", async () => {
    const text = "\n\nevent: result\ndata: {}\n\n:\r\nid: 1\rretry: 0\n\n";
    const { events, result } = await run({
      lang: "bash",
      code: 'printf %s "$1"; printf %s "$1" >&2',
      args: [text],
    });
    expect(result.stdout).toBe(text);
    expect(namesOf(events).filter((name) => name === "result")).toHaveLength(1);
  });
});

test("inputs that a program leaves alone have no events, and changed ones have", async () => {
  const [kept, changed] = [await api.stage("kept.txt", "1"), await api.stage("changed.txt", "1")];
  const code = 'open("changed.txt", "a").write("2"); open("new\\u2028 name.txt", "w").write("3")';
  const { events, result } = await run({ lang: "py", code, files: [kept, changed] });
  const told = events.filter(({ event }) => event === "file").map(({ data }) => data.name);
  expect(told.sort()).toEqual(
    ["changed.txt", "new\u2028 name.txt"]
      .filter((name) => result.files.some((file) => file.name === name))
      .sort(),
  );
  expect(result.files.length).toBeGreaterThan(told.length);
});

describe("before the first event", () => {
  test.each<[number, string, ExecInput, Record<string, string>]>([
    [400, "invalid_request", { lang: "py" }, {}],
    [400, "unsupported_language", { lang: "cobol", code: "" }, {}],
    [400, "invalid_request", { lang: "py", code: "" }, { prefer: "respond-async" }],
  ])("an error is an ordinary %d answer (%s)", async (status, error, input, headers) => {
    const answer = await openStream(url, "/exec", input, { headers });
    expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
    const { refusal } = await answer.answer();
    expect([answer.status, refusal.error]).toEqual([status, error]);
  });
});

test.each([
  ["text/event-stream", true],
  ["TEXT/Event-Stream; q=0.9, application/json; q=0.8", true],
  ["text/event-stream, */*;q=0.1", true],
  ["text/event-stream, application/json", false],
  ["application/json", false],
  ["*/*", false],
  ["text/event-stream;q=0", false],
])("Accept: %s", async (accept, isStream) => {
  const answer = await openStream(url, "/exec", { lang: "bash", code: "" }, { headers: { accept } });
  expect(answer.status).toBe(200);
  const type = answer.headers.get("content-type") ?? "";
  expect(type).toBe(isStream ? "text/event-stream" : "application/json; charset=utf-8");
  if (isStream) expect(namesOf(await answer.all())).toEqual(["started", "result"]);
  else expect((await answer.answer()).json()).toMatchObject({ code: 0 });
});

test("the headers say that nobody may keep it or hold it up", async () => {
  const headers = { "x-request-id": newKey().replace(".", "-") };
  const answer = await openStream(url, "/exec", { lang: "bash", code: "", no_such: 1 }, { headers });
  await answer.all();
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    ...headers,
    "cache-control": "no-store",
    "x-accel-buffering": "no",
    "x-svc-ignored-fields": "no_such",
  });
});

test("comments come while nothing else does", async () => {
  const code = 'import time\nprint("a")\ntime.sleep(11)\nprint("b")';
  const answer = await openStream(url, "/exec", { lang: "py", code });
  await answer.all();
  expect(answer.comments).toBe(1);
  expect(joined(answer.events, "stdout")).toBe("a\nb\n");
});

test("a reader that leaves ends its program, and the line of its request says so", async () => {
  const [marker, id] = [newMarker(), `left-${Math.random().toString(36).slice(2)}`];
  const code = "import time\nprint(1)\ntime.sleep(60)";
  const answer = await openStream(
    url,
    "/exec",
    { lang: "py", code, args: [marker] },
    { headers: { "x-request-id": id } },
  );
  await answer.until(({ event }) => event === "stdout");
  expect(processesWith(marker).length).toBeGreaterThan(0);
  answer.leave();
  await until(() => processesWith(marker).length === 0, APPEAR_MS);
  await expect.poll(() => requestLine(id)).toMatchObject({ outcome: "cancelled", level: 30 });
});

test("a repeated request is answered with the result alone", async () => {
  const headers = { "idempotency-key": newKey() };
  const input = { lang: "py", code: "import os\nprint(os.urandom(8).hex())" };
  const first = await streamed(url, input, { headers });
  const again = await openStream(url, "/exec", input, { headers });
  expect(await again.all()).toEqual([first.at(-1)]);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  const plain = await api.tryExec(input, { headers });
  expect(plain.json()).toEqual(first.at(-1)?.data);
});

test("two requests with one key at once: one has the events, both the result", async () => {
  const headers = { "idempotency-key": newKey() };
  const input = { lang: "py", code: "import time, os\nprint(os.urandom(8).hex())\ntime.sleep(1)" };
  const both = await Promise.all([streamed(url, input, { headers }), streamed(url, input, { headers })]);
  expect(both.map((events) => events.length).sort()).toEqual([1, 3]);
  expect(both[0]?.at(-1)).toEqual(both[1]?.at(-1));
});
