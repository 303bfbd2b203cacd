/** Programs that abuse their tools, in a whole system: they are refused, and a bystander with programs of all kinds does not notice. */

import { setTimeout as sleep } from "node:timers/promises";
import type { ToolCallRequired } from "@svc/contracts";
import { slow } from "@svc/test-kit/jail/slowness";
import { RAW_CLIENT } from "@svc/test-kit/programs/raw-client";
import type { Api } from "@svc/test-kit/system/api";
import { observe } from "@svc/test-kit/system/bystander";
import { IN_GUESTS } from "@svc/test-kit/system/guests";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, processorTicks, until } from "@svc/test-kit/system/processes";
import {
  declare,
  drive,
  driveOn,
  type Input,
  resultsOf,
  type Start,
  startPaused,
  tryResume,
  tryStart,
} from "@svc/test-kit/system/programmatic";
import { activeExecutions } from "@svc/test-kit/system/runner-metrics";
import type { System } from "@svc/test-kit/system/system";
import { afterEach, describe, expect, test } from "vitest";
import { useSystem } from "./support/use-system.ts";

/** What nobody may notice, on a machine that does other work too. */
const WORST_MS = slow(20_000);
const GONE_MS = slow(20_000);
/** A microVM stands still when its program has been paused for 10 s. */
const STILL_MS = IN_GUESTS ? 12_000 : 0;
let system: System;
let api: Api;
useSystem({ ...OPEN_LIMITS, PYTHON_CONCURRENCY: "4", PTC_RESUME_MAX_REQUESTS: "100000" }, (made) => {
  ({ system, api } = made);
});
afterEach(async () => {
  await until(async () => (await activeExecutions(system, "paused")) === 0, GONE_MS);
});

const tools = { add: ({ a, b }: Input) => a + b, get: (input: Input) => input };

/** Makes ordinary executions and an ordinary program with tools beside the hostile one. All of them must come out right. */
async function amongOthers<T>(hostile: Promise<T>): Promise<T> {
  const innocent = drive(api, { code: "t = 0\nfor n in range(6): t = add(a=t, b=n)\nprint(t)" }, tools);
  const { result, observed } = await observe(api, hostile);
  expect(observed.failures).toEqual([]);
  expect(observed.worstMs).toBeLessThan(WORST_MS);
  expect((await innocent).answer).toMatchObject({ status: "completed", stdout: "15\n", tool_calls_made: 6 });
  return result;
}
const raw = (code: string, more: Start = {}): Start => ({ code: `${RAW_CLIENT}\n${code}`, ...more });

/** Tool calls that the tool call server has ever recorded. */
async function recordedCalls(): Promise<number> {
  const port = system.instance.ports["tool-call-server"];
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(/^svc_tool_calls_total (\d+)$/m.exec(text)?.[1]);
}

describe("a program that asks for what is not its own", () => {
  test.each([
    ["of another name", "nope", "nope"],
    ["of every object", "constructor", "constructor"],
    ["of none", "", ""],
    ["of a very long name", "n\u{1f600}".repeat(50_000), "n\u{1f600}".repeat(128)],
  ])("gets no tool %s, and is ended", async (_what, name, shown) => {
    const before = await recordedCalls();
    const code = raw(`print("before", flush=True)
issue(sys.stdin.read())
time.sleep(60)
print("after")`);
    const { answer, pauses } = await drive(api, { ...code, stdin: name }, tools);
    const error = `Sandbox requested an unregistered tool: ${shown}`;
    expect(answer).toMatchObject({ status: "error", error_type: "unregistered_tool", error });
    expect(answer).toMatchObject({ stdout: "before\n", stderr: `[sandbox] ${error}\n`, tool_calls_made: 0 });
    expect([pauses.length, await recordedCalls()]).toEqual([0, before]);
  });

  test("cannot put a call or a result into another's run, though it knows all ids", async () => {
    const victim = await startPaused(api, { code: "print(add(a=1, b=2))", tools: declare(["add"]) });
    const [, execution = ""] = victim.continuation_token.split(".");
    const headers = [
      `X-Execution-ID: ${execution}`,
      "X-Tool-Call-ID: call_001",
      `X-Callback-Token: ${victim.continuation_token}`,
      `X-SVC-Egress-Grant: ${execution}`,
      "X-SVC-Internal-Token: x",
    ];
    const code = raw(`headers = "".join(h + "\\r\\n" for h in json.load(sys.stdin))
body = json.dumps({"tool_name": "add", "input": {"a": 40, "b": 2}})
print(Connection().send(request(body, headers=headers)).read()[2])
for path in ["/sessions/${execution}/results", "/sessions/${execution}/pending", "/internal/ptc-callback-token", "/sessions"]:
    print(Connection().send(request('{"results":[{"call_id":"call_001","result":0}]}', path=path, headers=headers)).read()[0])`);
    const hostile = drive(api, { ...code, stdin: JSON.stringify(headers) }, tools);
    const { answer, batches } = await amongOthers(hostile);
    expect(answer).toMatchObject({ status: "completed", stdout: `42\n${"404\n".repeat(4)}` });
    expect(batches).toEqual([["add"]]);
    const { answer: right, pauses } = await driveOn(api, victim, tools);
    expect(right).toMatchObject({ status: "completed", stdout: "3\n", tool_calls_made: 1 });
    expect(pauses).toHaveLength(1);
  });

  test("smuggles no second request past the first one", async () => {
    const before = await recordedCalls();
    const code = raw(`inner = request('{"tool_name":"add","input":{"a":666,"b":0}}')
call_of = lambda n: json.dumps({"tool_name": "add", "input": {"a": n, "b": 0}}).encode()
head = b"POST /tool-call HTTP/1.1\\r\\nHost: x\\r\\n"
n = len(call_of(1))
tries = [
  head + b"Content-Length: %d\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n" % len(inner) + inner,
  head + b"Transfer-Encoding: chunked\\r\\nContent-Length: 4\\r\\n\\r\\n%x\\r\\n" % len(inner) + inner + b"\\r\\n0\\r\\n\\r\\n",
  head + b"Transfer-Encoding: xchunked\\r\\n\\r\\n" + inner,
  head + b"Transfer-Encoding: chunked, identity\\r\\n\\r\\n0\\r\\n\\r\\n" + inner,
  head + b"Transfer-Encoding:\\x0bchunked\\r\\n\\r\\n0\\r\\n\\r\\n" + inner,
  head + b"Content-Length: 0\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(inner) + inner,
  head + b"Content-Length: +0\\r\\n\\r\\n" + inner,
  head + b"Content-Length: 0, %d\\r\\n\\r\\n" % len(inner) + inner,
  head + b"X: y\\n\\nContent-Length: 0\\r\\n\\r\\n" + inner,
  head + b" Content-Length: 5\\r\\n\\r\\n" + inner,
  b"POST /tool-call HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n" + inner * 3,
  b"POST /tool-call HTTP/0.9\\r\\n\\r\\n" + inner,
  b"POST /tool-call HTTP/1.1\\rContent-Length: 0\\r\\r" + inner,
  b"GET /tool-call HTTP/1.1\\r\\nHost: x\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n" + inner,
  b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + inner,
  b"\\r\\n" * 5000 + inner[:-1],
  b"\\0" + inner,
]
for at, data in enumerate(tries):
    try:
        c = Connection().send(data)
        c.s.shutdown(socket.SHUT_WR)
        status = c.read()[0]
    except OSError:
        status = 0
    print(at, status)
print(json.loads(Connection().send(head + b"Content-Length: %d\\r\\n\\r\\n" % n + call_of(7)).read()[2]))`);
    const asked: Input[] = [];
    const { answer } = await amongOthers(
      drive(api, code, { ...tools, add: (input: Input) => asked.push(input) }),
    );
    expect(answer).toMatchObject({ status: "completed", stderr: "", tool_calls_made: 1 });
    const lines = answer.stdout.trimEnd().split("\n");
    expect(lines.pop()).toBe("1");
    for (const line of lines) expect(line).toMatch(/^\d+ (0|400|405)$/);
    expect(lines).toHaveLength(17);
    expect(asked).toEqual([{ a: 7, b: 0 }]);
    // Of the program that ran beside it, and of this one.
    expect((await recordedCalls()) - before).toBe(6 + 1);
  });
});

describe("a program that asks for too much", () => {
  const FLOODS: Record<string, [code: string, error: string | undefined]> = {
    "calls that it never waits for": [
      `held = []
while True: held.append(issue("add", a=len(held), b=0))`,
      "tool_limit",
    ],
    "calls from many threads": [
      `def pour():
    while True: call("add", a=1, b=1)
for _ in range(100): threading.Thread(target=pour, daemon=True).start()
time.sleep(60)`,
      "tool_limit",
    ],
    "connections that say nothing": [
      `import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
held = []
for _ in range(3000):
    try: held.append(Connection())
    except OSError: pass
print(len(held) > 100)`,
      undefined,
    ],
  };
  test.each(Object.entries(FLOODS))("%s: is bounded", async (_what, [code, error]) => {
    const few = { ...tools, get: ({ n }: Input) => n };
    const { answer } = await amongOthers(drive(api, raw(code), few));
    expect(answer.status).toBe(error === undefined ? "completed" : "error");
    if (error !== undefined) expect(answer).toMatchObject({ error_type: error, tool_calls_made: 200 });
  });

  test("calls that are too large to be kept together end it", async () => {
    const marker = newMarker();
    const code = `held = [issue("get", n=n, pad="x" * 1_000_000) for n in range(40)]
print([c.read()[0] for c in held])`;
    const untilRefused = async () => {
      let answer = await tryStart(api, { ...raw(code), args: [marker], tools: declare(["get"]) });
      while (answer.status === 200) {
        const { continuation_token, tool_calls } = answer.json<ToolCallRequired>();
        const results = resultsOf(tool_calls, { get: ({ n }: Input) => n });
        answer = await tryResume(api, continuation_token, results);
      }
      return answer;
    };
    const answer = await amongOthers(untilRefused());
    expect([answer.status, answer.refusal.error]).toEqual([422, "state_too_large"]);
    await until(() => processesWith(marker).length === 0, GONE_MS);
  });

  test("arguments over the limit fail inside the program, at the byte, and cost no call", async () => {
    const code = `for size in (1048576 - 40, 1048576, 5_000_000):
    try:
        print(get(pad="x" * size))
    except ToolExecutionError as error:
        print("refused", str(error)[:60])`;
    const { answer } = await amongOthers(drive(api, { code }, { get: ({ pad }: Input) => pad.length }));
    expect(answer.stdout.split("\n").map((line) => line.split(" ")[0])).toEqual([
      "1048536",
      "refused",
      "refused",
      "",
    ]);
    expect(answer).toMatchObject({ status: "completed", tool_calls_made: 1 });
  });
});

describe("a program that does not stand still", () => {
  test("is stopped with all that it forks while it is paused, uses no processor, and goes on", async () => {
    const marker = newMarker();
    const code = `import os
if os.fork() == 0:
    while True:
        try: os.fork()
        except OSError: pass
print("one", flush=True)
print(get(n=1), flush=True)
print(get(n=2), flush=True)
os.killpg(0, 9)`;
    const paused = await startPaused(api, { code, args: [marker], tools: declare(["get"]) });
    expect(paused).toMatchObject({ partial_stdout: "one\n", tool_calls: [{ input: { n: 1 } }] });
    expect(processesWith(marker).length).toBeGreaterThan(IN_GUESTS ? 0 : 20);
    await sleep(STILL_MS);
    const before = processorTicks(marker);
    await amongOthers(sleep(1500));
    expect(processorTicks(marker)).toBe(before);
    const { answer } = await amongOthers(driveOn(api, paused, { get: ({ n }: Input) => n }));
    expect(answer).toMatchObject({ status: "error", error_type: "signal", stdout: "one\n1\n2\n" });
    await until(() => processesWith(marker).length === 0, GONE_MS);
  });

  test("pauses while its other threads write on; all of it is there, in order, once", async () => {
    const code = `import threading, time
stop = False
def write():
    n = 0
    while not stop:
        print(n, flush=True)
        n += 1
        if n % 100 == 0: time.sleep(0.02)
t = threading.Thread(target=write)
t.start()
for n in range(4): get(n=n)
stop = True
t.join()`;
    const { answer, pauses } = await amongOthers(drive(api, { code }, tools));
    const [numbers, ...cut] = answer.stdout.split("[");
    expect(pauses).toHaveLength(4);
    for (const { partial_stdout } of pauses as ToolCallRequired[]) {
      expect(answer.stdout.startsWith(partial_stdout.slice(0, 60_000))).toBe(true);
    }
    const lines = (numbers as string).trimEnd().split("\n");
    if (cut.length > 0) lines.pop();
    expect(lines).toEqual(lines.map((_, at) => String(at)));
    expect(answer).toMatchObject({ status: "completed", code: 0, tool_calls_made: 4 });
  });
});
