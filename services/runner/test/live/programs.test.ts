/** Programs with tools on a real runner: every call travels through jail, relay, gateway, tool call server and back. */

import { ledgerKey } from "@svc/capabilities";
import { type ExecuteResponse, newId } from "@svc/contracts";
import { RAW_CLIENT } from "@svc/test-kit/programs/raw-client";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  endedOf,
  fail,
  okOf,
  type ProgramSystem,
  pausedOf,
  startProgramSystem,
} from "../support/programs.ts";

let system: ProgramSystem;
beforeAll(async () => {
  system = await startProgramSystem();
});
afterAll(() => system?.stop());

const program = (text: string) => `${RAW_CLIENT}\n${text}`;
const add = ({ tool_input }: { tool_input: unknown }) => {
  const { a, b } = tool_input as { a: number; b: number };
  return a + b;
};
const names = ({ files }: ExecuteResponse) => files.map(({ name }) => name);

describe("a program with tools", () => {
  it("pauses at each call, goes on with the result, and stores its files once, at the end", async () => {
    const { one, rounds, result } = await system.drive(
      program(`
print("before", flush=True)
total = 0
for i in range(5):
    open(f"step{i}.txt", "w").write(str(total))
    total = call("add", a=total, b=i)
    print("step", i, total, flush=True)
print("after")`),
      add,
    );
    expect(rounds.map(({ pending_call_ids }) => pending_call_ids)).toEqual(
      [1, 2, 3, 4, 5].map((n) => [`call_00${n}`]),
    );
    expect(rounds[2]).toMatchObject({
      stdout: "before\nstep 0 0\nstep 1 1\n",
      runner_url: "http://this-runner:2000",
      tool_calls_made: 3,
    });
    expect(result.stdout).toBe("before\nstep 0 0\nstep 1 1\nstep 2 3\nstep 3 6\nstep 4 10\nafter\n");
    expect(result).toMatchObject({ code: 0, status: null, stderr: "", tool_calls_made: 5 });
    expect(names(result)).toEqual([0, 1, 2, 3, 4].map((i) => `step${i}.txt`));
    expect(result.execution_time).toBeGreaterThanOrEqual(rounds[4]?.execution_time ?? Infinity);
    expect((await system.health()).slots).toMatchObject({ busy: 0, paused: 0 });
    expect(await system.discard(one.id)).toBe(404);
  });

  it("has all calls that are outstanding together in one round, in the order in which it made them", async () => {
    const { rounds, calls, result } = await system.drive(
      program(`
connections = [issue("add", a=i, b=100) for i in range(50)]
print([json.loads(c.read()[2]) for c in connections])`),
      add,
    );
    expect(rounds).toHaveLength(1);
    expect(rounds[0]?.pending_call_ids).toHaveLength(50);
    expect(calls.map(({ input_json }) => JSON.parse(input_json).a)).toEqual([...Array(50).keys()]);
    expect(JSON.parse(result.stdout)).toEqual([...Array(50).keys()].map((i) => i + 100));
  });

  it("goes on with the results that come with its resume, whatever is said of its calls later", async () => {
    const one = await system.execution();
    const text = program(`
connections = [issue("add", a=i, b=1) for i in range(2)]
for c in connections:
    status, _, body = c.read()
    print(status, body)
print(call("add", a=5, b=5))`);
    const { pending_call_ids } = pausedOf(await system.start(one, text));
    const answers = [
      { call_id: "call_001", outcome: { result_json: '{"x":[1e400,"é"]}' } },
      { call_id: "call_002", outcome: { error_message: "no luck" } },
      { call_id: "call_003", outcome: { result_json: "0" } },
    ];
    const paused = pausedOf(await system.resume(one, 2, pending_call_ids, { answers }));
    expect(paused).toMatchObject({
      stdout: '200 {"x":[1e400,"é"]}\n422 no luck\n',
      pending_call_ids: ["call_003"],
      tool_calls_made: 3,
    });
    await system.answer(
      one,
      ["call_001", "call_002"].map((call_id) => ({ call_id, result: "other" })),
    );
    await system.answer(one, [{ call_id: "call_003", result: 10 }]);
    const ended = endedOf(await system.resume(one, 3, ["call_003"]));
    expect(ended).toMatchObject({ stdout: `${paused.stdout}10\n`, code: 0 });
  });

  it("is charged for its calls, however quickly their results come and it ends", async () => {
    const store = new Redis(system.gateway.redis.socket);
    const text = program(`for c in [issue("add", a=i, b=1) for i in range(5)]: c.read()`);
    for (let time = 0; time < 10; time++) {
      const one = await system.execution();
      const { pending_call_ids } = pausedOf(await system.start(one, text));
      const answers = pending_call_ids.map((call_id) => ({ call_id, outcome: { result_json: "1" } }));
      expect(endedOf(await system.resume(one, 2, pending_call_ids, { answers })).code).toBe(0);
      const record = JSON.parse((await store.get(ledgerKey(one.grantId))) ?? "{}");
      expect(record).toMatchObject({ tool_call_count: 5, request_count: 5 });
      await system.toolServer.close(one.exchange);
    }
    store.disconnect();
  });

  it("tells its calls with the pause, unless they are large together", async () => {
    const text = program(
      `for n in (1, 8000, 9000): call("add", a=1, b=1, text="x" * n)\nfor c in [issue("add", a=i, b=1, text="x" * 5000) for i in range(2)]: c.read()`,
    );
    const { rounds } = await system.drive(text, add);
    expect(rounds.map(({ pending_calls }) => pending_calls?.length)).toEqual([1, 1, undefined, undefined]);
    expect(rounds[0]).toMatchObject({
      hash_seed: 7,
      pending_calls: [{ call_id: "call_001", tool_name: "add", tool_input: { a: 1, b: 1, text: "x" } }],
    });
  });

  it("may call from threads", async () => {
    const { rounds, result } = await system.drive(
      program(`
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    print(sorted(pool.map(lambda i: call("add", a=i, b=1), range(20))))`),
      add,
    );
    expect(JSON.parse(result.stdout)).toEqual([...Array(20).keys()].map((i) => i + 1));
    expect(rounds.map(({ pending_call_ids }) => pending_call_ids.length)).toEqual([8, 8, 4]);
  });

  it("waits for its caller also when one of its threads never rests", async () => {
    const restless = await startProgramSystem({ env: { PTC_SETTLE_MAX_MS: "1000" } });
    onTestFinished(restless.stop);
    const { rounds, result } = await restless.drive(
      program(`
done = False
def spin():
    while not done: pass
thread = threading.Thread(target=spin)
thread.start()
print(call("add", a=1, b=2))
done = True`),
      add,
    );
    expect(rounds).toHaveLength(1);
    expect(rounds[0]?.execution_time).toBeGreaterThan(900);
    expect(result.stdout).toBe("3\n");
  });

  it("gets every JSON value as it was given, and what it sends arrives as it is", async () => {
    const values = [null, true, 0, -1.5e-7, "", "3", "é\u0000\u{1f600}\n", [], {}, { a: [{ b: null }] }];
    values.push("x".repeat(1_000_000), JSON.parse(`${"[".repeat(60)}${"]".repeat(60)}`));
    const seen: unknown[] = [];
    const { result } = await system.drive(
      program(`
import sys
sys.setrecursionlimit(10000)
value = None
for i in range(${values.length + 1}):
    value = call("look up", value=value, i=i)
print("done")`),
      ({ tool_input }) => {
        const { value, i } = tool_input as { value: unknown; i: number };
        seen[i] = value;
        return values[i] ?? null;
      },
    );
    expect(result.stderr).toBe("");
    expect(seen.slice(1)).toEqual(values);
  });

  it("hears of a tool that failed, and may go on", async () => {
    const { result } = await system.drive(
      program(`
status, head, body = issue("add").read()
print(status, "X-Tool-Call-Id: call_001".lower() in head.lower(), body)`),
      () => fail("no such thing: é"),
    );
    expect(result.stdout).toBe("422 True no such thing: é\n");
  });

  it("may leave calls behind at its end: they still happen, once", async () => {
    const { rounds, calls, result } = await system.drive(
      program(`
issue("add", a=1, b=1)
issue("add", a=2, b=2)
open("out.txt", "w").write("x")
print("bye")
os._exit(3)`),
      add,
    );
    expect(rounds.map(({ pending_call_ids }) => pending_call_ids)).toEqual([["call_001", "call_002"]]);
    expect(rounds[0]?.stdout).toBe("bye\n");
    expect(calls).toHaveLength(2);
    expect(result).toMatchObject({ code: 3, stdout: "bye\n" });
    expect(names(result)).toEqual(["out.txt"]);
  });

  it("gets some of its results later: what is not answered comes again with its id", async () => {
    const one = await system.execution();
    const text = program(`
connections = [issue("add", a=i, b=0) for i in range(3)]
print([c.read()[2] for c in reversed(connections)])`);
    const first = pausedOf(await system.start(one, text));
    expect(first.pending_call_ids).toEqual(["call_001", "call_002", "call_003"]);
    await system.answer(one, [{ call_id: "call_002", result: 2 }]);
    const second = pausedOf(await system.resume(one, 2, ["call_002"]));
    expect(second.pending_call_ids).toEqual(["call_001", "call_003"]);
    await system.answer(one, [
      { call_id: "call_001", result: 1 },
      { call_id: "call_003", result: 3 },
    ]);
    const result = endedOf(await system.resume(one, 3, ["call_001", "call_003"]));
    expect(result.stdout).toBe("['3', '2', '1']\n");
  });

  it("goes on when the results come after the resume, and not before they are there", async () => {
    const one = await system.execution();
    pausedOf(await system.start(one, program(`print(call("add", a=1, b=1))`)));
    const resumed = system.resume(one, 2, ["call_001"]);
    await system.answer(one, [{ call_id: "call_001", result: "late" }]);
    expect(endedOf(await resumed).stdout).toBe("late\n");
  });

  it("finds its result before the time that it waits for it is over, however long the pause was", async () => {
    const one = await system.execution();
    const text = program(`
import select
c = issue("add")
ready, _, _ = select.select([c.s], [], [], 3)
print(bool(ready), c.read()[2] if ready else None)`);
    pausedOf(await system.start(one, text));
    await new Promise((resolve) => setTimeout(resolve, 3500));
    await system.answer(one, [{ call_id: "call_001", result: 5 }]);
    expect(endedOf(await system.resume(one, 2, ["call_001"])).stdout).toBe("True 5\n");
  });

  it("reads its inputs, and changed and new files come back in the grant of the last round", async () => {
    const input = await system.gateway.upload("data.csv", "1\n");
    const { result } = await system.drive(
      program(`
total = call("add", a=int(open("data.csv").read()), b=1)
open("data.csv", "w").write(str(total))
open("new.txt", "w").write("n")`),
      add,
      { inputs: [input] },
    );
    expect(names(result).sort()).toEqual(["data.csv", "new.txt"]);
    expect(result.files.every(({ storage_session_id }) => storage_session_id.startsWith("ceg1."))).toBe(true);
  });

  it("is bash as well", async () => {
    const { result } = await system.drive(
      `echo start; python3 - <<'END'
${RAW_CLIENT}
print(call("add", a=20, b=22))
END
echo end`,
      add,
      { language: "bash" },
    );
    expect(result.stdout).toBe("start\n42\nend\n");
  });

  it("repeats its hash order in every attempt", async () => {
    const text = `print(hash("tools"), list({"a", "b", "c", "d"}))`;
    const runs = await Promise.all([1, 2].map(async () => system.start(await system.execution(), text)));
    const [first, second] = runs.map((answer) => endedOf(answer).stdout);
    expect(first).toBe(second);
  });
});

describe("the time of a program", () => {
  it("is limited in each round, and pauses take none of it", async () => {
    const one = await system.execution();
    const text = program(`
time.sleep(3)
call("add", a=1, b=1)
time.sleep(3)
call("add", a=2, b=2)
open("left.txt", "w").write("x")
time.sleep(30)`);
    const first = pausedOf(await system.start(one, text, { run_timeout: 5500 }));
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await system.answer(one, [{ call_id: "call_001" }]);
    const second = pausedOf(await system.resume(one, 2, ["call_001"], { runTimeout: 5500 }));
    expect(second.execution_time - first.execution_time).toBeLessThan(5500);
    await system.answer(one, [{ call_id: "call_002" }]);
    const result = endedOf(await system.resume(one, 3, ["call_002"], { runTimeout: 500 }));
    expect(result).toMatchObject({
      status: "TO",
      stderr: "[sandbox] Time limit exceeded (500 ms)\n",
      code: 137,
    });
    expect(names(result)).toEqual(["left.txt"]);
    expect(result.execution_time).toBeGreaterThan(second.execution_time + 490);
    expect(result.execution_time).toBeLessThan(second.execution_time + 10_000);
  });

  it("ends it also while it has calls outstanding", async () => {
    const text = program(`
issue("add")
while True: pass`);
    const result = endedOf(await system.start(await system.execution(), text, { run_timeout: 900 }));
    expect(result).toMatchObject({ status: "TO", tool_calls_made: 1 });
  });
});

describe("a program at fault", () => {
  it("is ended when it asks for a tool that was not declared", async () => {
    const text = program(`
print("asking", flush=True)
open("out.txt", "w").write("x")
call("rm -rf", a=1)
print("not reached")`);
    const result = endedOf(await system.start(await system.execution(), text));
    expect(result).toMatchObject({
      programmatic_fault: { type: "unregistered_tool", tool: "rm -rf" },
      stdout: "asking\n",
      stderr: "[sandbox] Sandbox requested an unregistered tool: rm -rf\n",
      code: 137,
      signal: "SIGKILL",
      status: null,
    });
    expect(names(result)).toEqual(["out.txt"]);
  });

  it("is ended at the call that is one too many", async () => {
    const text = program(`
for i in range(4): issue("add", a=i, b=0)
time.sleep(30)`);
    const result = endedOf(await system.start(await system.execution(), text, { ptc: { max_calls: 3 } }));
    expect(result).toMatchObject({
      programmatic_fault: { type: "tool_limit" },
      stderr: "[sandbox] Execution exceeded maximum tool calls (200)\n",
      tool_calls_made: 3,
    });
  });
});

describe("an execute request with tools", () => {
  const codeOf = ({ status, json }: { status: number; json: () => Record<string, unknown> }) => [
    status,
    json().error,
  ];

  it("is refused for languages without tools", async () => {
    const answer = await system.start(await system.execution(), "", { language: "javascript" });
    expect(codeOf(answer)).toEqual([400, "unsupported_language"]);
    expect(answer.json().message).toContain("bash, python");
  });

  it("is refused when its manifest is for another execution, or for none with tools", async () => {
    const one = await system.execution();
    const other = { ...one, id: newId() };
    const answer = await system.start(one, "", { ptc: { execution_id: other.id } });
    expect(answer.json()).toMatchObject({ error: "manifest_refused", reason: "scope_mismatch" });
  });

  it("is refused when its tools or its history are not what a worker sends", async () => {
    const wrong = [
      { tools_json: "{" },
      { tools_json: "{}" },
      { history: [{ call_id: "call_001", name: "add", input_json: "{" }] },
    ];
    for (const ptc of wrong) {
      const answer = await system.start(await system.execution(), "", { ptc });
      expect(codeOf(answer), JSON.stringify(ptc)).toEqual([400, "invalid_request"]);
    }
  });

  it("leaves plain programs without a socket", async () => {
    const grant = await system.gateway.register([]);
    const body = {
      language: "bash",
      version: "*",
      files: [
        {
          name: "script.sh",
          content:
            'for each in 3190.sock tools.json; do test -e "/run/svc/$each" && echo "$each"; done; echo "[$SANDBOX_TOOL_SOCKET$PYTHONHASHSEED]"',
        },
      ],
      session_id: grant.payload.session_id,
      output_session_id: grant.payload.output_session_id,
    };
    const manifest = system.sign(grant.executionManifestClaims, body, grant.egressGrantToken, false);
    const signed = { ...body, egress_grant: grant.egressGrantToken, execution_manifest: manifest };
    expect(okOf(await system.post("/execute", signed))).toMatchObject({ stdout: "[]\n", code: 0 });
  });
});
