/** A lost program is run from the top and fed what is recorded: real runner, jail, gateway and tool call server. */

import { callIdOf, type PendingCall, type RecordedCall } from "@svc/contracts";
import { RAW_CLIENT } from "@svc/test-kit/programs/raw-client";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  endedOf,
  fail,
  type ProgramSystem,
  pausedOf,
  RECORDED_MS,
  type Result,
  type Round,
  recorded,
  startProgramSystem,
} from "../support/programs.ts";

let system: ProgramSystem;
beforeAll(async () => {
  system = await startProgramSystem();
});
afterAll(() => system?.stop());

const program = (text: string) => `${RAW_CLIENT}\n${text}`;
const call = (number: number, input: object, outcome?: RecordedCall["outcome"]): RecordedCall => ({
  call_id: callIdOf(number),
  name: "add",
  input_json: JSON.stringify(input),
  ...(outcome === undefined ? {} : { outcome }),
});
const result = (value: unknown) => ({ result_json: JSON.stringify(value) });
const replay = (history: RecordedCall[], round = 2) => ({
  mode: "replay" as const,
  round,
  history,
  max_calls: 200 - history.length,
});

describe("a repeated program", () => {
  it("gets its recorded results at once, without a word to the tool call server, and goes on live", async () => {
    const one = await system.execution();
    const text = program(`
first = call("add", b=1, a={"y": 1, "x": [1]})
try:
    call("add", a=2)
except RuntimeError as error:
    print(error, flush=True)
print(first, call("add", a=3))`);
    const history = [
      call(1, { a: { x: [1], y: 1 }, b: 1 }, result({ big: "x" })),
      call(2, { a: 2 }, { error_message: "no" }),
    ];
    const paused = pausedOf(await system.start(one, text, { ptc: replay(history, 3) }));
    expect(paused).toMatchObject({
      pending_call_ids: ["call_003"],
      stdout: "422 no\n",
      tool_calls_made: 3,
    });
    const { pending_calls } = await system.toolServer.pending(one.exchange, ["call_003"], RECORDED_MS);
    expect(await system.toolServer.pending(one.exchange)).toEqual({ status: "active", pending_calls });
    expect(pending_calls.map(({ call_id }) => call_id)).toEqual(["call_003"]);
    await system.answer(one, [{ call_id: "call_003", result: 3 }]);
    const ended = endedOf(await system.resume(one, 4, ["call_003"]));
    expect(ended).toMatchObject({ stdout: "422 no\n{'big': 'x'} 3\n", tool_calls_made: 3 });
    expect(ended.programmatic_fault).toBeUndefined();
  });

  it("asks again for what was recorded without a result, under the old id; new ids go on after all", async () => {
    const one = await system.execution();
    const text = program(`
c = [issue("add", a=i) for i in range(4)]
print([each.read()[2] for each in c])`);
    const history = [call(1, { a: 2 }), call(2, { a: 0 }, result("zero")), call(3, { a: 1 })];
    const paused = pausedOf(await system.start(one, text, { ptc: replay(history) }));
    expect(paused.pending_call_ids).toEqual(["call_003", "call_001", "call_004"]);
    const ids = paused.pending_call_ids;
    await system.answer(
      one,
      ids.map((call_id) => ({ call_id, result: call_id })),
    );
    const ended = endedOf(await system.resume(one, 3, ids));
    expect(ended.stdout).toBe(`['"zero"', '"call_003"', '"call_001"', '"call_004"']\n`);
  });

  it("that asks for something else is ended, never answered wrongly", async () => {
    const text = program(`print("hello"); call("add", a=2)`);
    const history = [call(1, { a: 1 }, result(1))];
    const ended = endedOf(await system.start(await system.execution(), text, { ptc: replay(history) }));
    expect(ended).toMatchObject({
      programmatic_fault: { type: "replay_diverged" },
      stderr: "[sandbox] The program did not repeat its recorded tool calls\n",
      signal: "SIGKILL",
    });
  });

  it("that ends without having asked for all has diverged as well", async () => {
    const history = [call(1, { a: 1 }, result(1)), call(2, { a: 1 }, result(1))];
    const text = program(`print(call("add", a=1))`);
    const ended = endedOf(await system.start(await system.execution(), text, { ptc: replay(history) }));
    expect(ended).toMatchObject({
      programmatic_fault: { type: "replay_diverged" },
      stdout: "1\n",
      code: 0,
      stderr: "[sandbox] The program did not repeat its recorded tool calls\n",
    });
  });

  it("may sleep where its first attempt slept, although it has a call outstanding", async () => {
    const text = program(`
c = issue("add", a=1)
time.sleep(1.5)
print(call("add", a=2), flush=True)
print(c.read()[2])`);
    const history = [call(1, { a: 1 }), call(2, { a: 2 }, result("two"))];
    const one = await system.execution();
    const paused = pausedOf(await system.start(one, text, { ptc: replay(history) }));
    expect(paused).toMatchObject({ pending_call_ids: ["call_001"], stdout: "two\n" });
    expect(await system.discard(one.id)).toBe(204);
  });

  it("is not taken for blocked while it reads what it was told", async () => {
    const count = 60;
    const text = program(`
c = issue("add", a=0)
for n in range(1, ${count} + 1):
    print(call("add", a=n), flush=True)
print(c.read()[2])`);
    const numbers = Array.from({ length: count }, (_, at) => at + 1);
    const history = [call(0, { a: 0 }), ...numbers.map((n) => call(n, { a: n }, result(n)))];
    const one = await system.execution();
    const paused = pausedOf(await system.start(one, text, { ptc: replay(history) }));
    expect(paused).toMatchObject({
      pending_call_ids: ["call_000"],
      stdout: numbers.map((n) => `${n}\n`).join(""),
    });
    expect(await system.discard(one.id)).toBe(204);
  });
});

/** A program as a list of steps: batches of calls with small arguments, some of them equal, some failing. */
const stepsArbitrary = fc.array(fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 4,
});
const textOf = (steps: number[][]) =>
  program(`
total = 0
for batch in ${JSON.stringify(steps)}:
    open_calls = [issue("add", a=a, total=total) for a in batch]
    for c in open_calls:
        status, _, body = c.read()
        total = (total * 7 + status + len(body) + sum(map(ord, body))) % 1000
    print(total, flush=True)
print("end", total)`);
const tool = ({ tool_input }: PendingCall): unknown => {
  const { a, total } = tool_input as { a: number; total: number };
  return a === 4 ? fail(`four at ${total}`) : a * 100 + total;
};

function resultOf(call: RecordedCall | undefined): Result {
  const { call_id = "", outcome = { error_message: "never called" } } = call ?? {};
  return "error_message" in outcome
    ? { call_id, is_error: true, error_message: outcome.error_message }
    : { call_id, result: JSON.parse(outcome.result_json) };
}

describe("live and repeated attempts", () => {
  it("end alike, wherever the live one was lost", async () => {
    const property = fc.asyncProperty(stepsArbitrary, fc.nat(), async (steps, at) => {
      const live = await system.drive(textOf(steps), tool);
      const lostAfter = at % live.rounds.length;
      const one = await system.execution();
      const history: RecordedCall[] = [];
      let round: Round = pausedOf(await system.start(one, textOf(steps)));
      for (let number = 2; "paused" in round; number++) {
        const { pending_calls } = await system.toolServer.pending(
          one.exchange,
          round.pending_call_ids,
          RECORDED_MS,
        );
        const results = pending_calls.map((each) => live.calls.find((c) => c.call_id === each.call_id));
        for (const [index, each] of pending_calls.entries()) {
          history.push({ ...recorded(each, undefined), outcome: results[index]?.outcome } as RecordedCall);
        }
        if (number - 2 === lostAfter) {
          expect(await system.discard(one.id)).toBe(204);
          const again = await system.start(one, textOf(steps), { ptc: replay(history, number) });
          round = again.json() as unknown as Round;
        } else {
          await system.answer(one, results.map(resultOf));
          round = (await system.resume(one, number, round.pending_call_ids)).json() as unknown as Round;
        }
      }
      expect(round).toMatchObject({
        stdout: live.result.stdout,
        tool_calls_made: live.result.tool_calls_made,
      });
      expect(history.map(({ input_json }) => input_json)).toEqual(live.calls.map((c) => c.input_json));
    });
    await fc.assert(property, { numRuns: 12 });
  });
});
