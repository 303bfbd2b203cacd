/**
 * What a program may rely on, and what it may not, when it is run again from the top at every resume; and that a system
 * which keeps paused programs gives the same answers.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { slow } from "@svc/test-kit/jail/slowness";
import type { Api } from "@svc/test-kit/system/api";
import {
  declare,
  drive,
  resultsOf,
  startPaused,
  type Tools,
  tryResume,
} from "@svc/test-kit/system/programmatic";
import { describe, expect, test } from "vitest";
import { useSystemOfMode } from "./support/use-system.ts";

const DIVERGED = "The program did not repeat its recorded tool calls";
const ECHO = { echo: ({ value }) => value } satisfies Tools;

describe.each(["live", "replay"] as const)("%s", (mode) => {
  let api: Api;
  useSystemOfMode(mode, (client) => {
    api = client;
  });

  test("sets of texts keep their order through all rounds", async () => {
    const code = `words = {f"word {i}" for i in range(40)}
for i, word in enumerate(words):
    if i < 5:
        await echo(value=word)
print(len(words))`;
    const { answer, pauses } = await drive(api, { code }, ECHO);
    expect(answer).toMatchObject({ status: "completed", stdout: "40\n", tool_calls_made: 5 });
    expect(new Set(pauses.map(({ tool_calls }) => tool_calls[0]?.input.value)).size).toBe(5);
  });

  test.each([
    ["python", "for _ in range(4):\n    print(await count())"],
    ["bash", "for i in 1 2 3 4; do count; done"],
  ])("equal calls keep their own results, in %s", async (lang, code) => {
    let counted = 0;
    const { answer } = await drive(api, { lang, code }, { count: () => ++counted });
    expect(answer).toMatchObject({ status: "completed", stdout: "1\n2\n3\n4\n" });
    expect(counted).toBe(4);
  });

  test("calls that are not answered yet come again with their ids, beside new ones", async () => {
    const code = `async def twice(value):
    return await echo(value=await echo(value=value) + "!")
print(await asyncio.gather(*[twice(v) for v in "abc"]))`;
    const first = await startPaused(api, { code, tools: declare(["echo"]) });
    const some = resultsOf(first.tool_calls.slice(0, 2), ECHO);
    const second = (await tryResume(api, first.continuation_token, some)).ok<typeof first>();
    const third = first.tool_calls[2];
    expect(second.tool_calls.find(({ id }) => id === third?.id)).toEqual(third);
    expect(second.tool_calls.map(({ input }) => input.value).sort()).toEqual(["a!", "b!", "c"]);
    expect(new Set(second.tool_calls.map(({ id }) => id)).size).toBe(3);
    const all = resultsOf(second.tool_calls, ECHO);
    const last = (await tryResume(api, second.continuation_token, all)).ok<typeof first>();
    expect(last.tool_calls.map(({ input }) => input.value)).toEqual(["c!"]);
    const end = await tryResume(api, last.continuation_token, resultsOf(last.tool_calls, ECHO));
    expect(end.ok()).toMatchObject({
      status: "completed",
      stdout: "['a!', 'b!', 'c!']\n",
      tool_calls_made: 6,
    });
  });

  test("the run limit is for one round; the time of a pause does not count", async () => {
    const code = `import time
for i in range(int(sys.argv[1])):
    time.sleep(${slow(0.6)})
    await echo(value=i)
time.sleep(await echo(value="last"))
print("end")`;
    const start = (calls: number) => ({ code, args: [String(calls)], timeout: slow(1700) });
    const between = (_: unknown, pause: number) =>
      pause === 1 && mode === "live" ? sleep(slow(1800)) : undefined;
    const { answer } = await drive(api, start(3), { echo: () => slow(0.1) }, { between });
    expect(answer).toMatchObject({ status: "completed", stdout: "end\n" });
    expect(answer.execution_time).toBeGreaterThan(slow(1900));
    const late = await drive(api, start(1), { echo: () => 60 });
    expect(late.answer).toMatchObject({ status: "error", error_type: "timeout", sandbox_status: "TO" });
    expect(late.answer).toMatchObject({ error: "Time limit exceeded", tool_calls_made: 2 });
  });

  test("files come from one attempt, whatever they are called", async () => {
    const code = `import time
name = f"{time.time_ns()}.txt"
open(name, "x").write("x")
await echo(value=1)
await echo(value=2)
print(name)`;
    const { answer } = await drive(api, { code }, ECHO);
    expect(answer.files.map(({ name }) => `${name}\n`)).toEqual([answer.stdout]);
    const stored = await api.send("GET", `/files/${answer.session_id}`);
    expect(stored.ok<unknown[]>()).toHaveLength(1);
  });

  describe("a program that does not repeat its calls", () => {
    const changed = `import time
print("begin")
await echo(value=time.time_ns())
print("end")`;
    const fewer = `import time
n = time.time_ns() % 1000003
await asyncio.gather(*[echo(value=i) for i in range(2)])
await echo(value=n)
await echo(value=0)
print("end")`;
    test.each([
      ["other arguments", changed],
      ["one of several calls", fewer],
    ])(mode === "live" ? "does not have to: %s" : "is told so: %s", async (_, code) => {
      const { answer } = await drive(api, { code }, ECHO);
      if (mode === "live") {
        expect(answer).toMatchObject({ status: "completed", stderr: "" });
        return;
      }
      const diverged = { status: "error", error_type: "replay_diverged", error: DIVERGED };
      expect(answer).toMatchObject({ ...diverged, stderr: `[sandbox] ${DIVERGED}\n` });
      expect(answer.stdout).not.toContain("end");
    });
  });
});
