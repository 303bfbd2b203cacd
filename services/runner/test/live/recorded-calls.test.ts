/** How the calls of a pause are recorded and charged: together when all of them may be made, each on its own when not. */

import { type LedgerRecord, ledgerKey } from "@svc/capabilities";
import { RAW_CLIENT } from "@svc/test-kit/programs/raw-client";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  endedOf,
  eventually,
  type ProgramSystem,
  pausedOf,
  RECORDED_MS,
  startProgramSystem,
  TOOLS,
} from "../support/programs.ts";

const MAX_BYTES = 1000;
let system: ProgramSystem;
let store: Redis;
beforeAll(async () => {
  system = await startProgramSystem({ env: { EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES: String(MAX_BYTES) } });
  store = new Redis(system.gateway.redis.socket).on("error", () => {});
});
afterAll(async () => {
  store?.disconnect();
  await system?.stop();
});

type Execution = Awaited<ReturnType<ProgramSystem["execution"]>>;
const recordOf = async ({ grantId }: Execution) =>
  JSON.parse((await store.get(ledgerKey(grantId))) ?? "null") as LedgerRecord;
const recorded = async ({ exchange }: Execution, ids: string[] = []) =>
  (await system.toolServer.pending(exchange, ids, ids.length === 0 ? 0 : RECORDED_MS)).pending_calls.map(
    ({ call_id }) => call_id,
  );
const charged = (one: Execution, count: number) =>
  eventually(`${count} calls are charged`, async () => (await recordOf(one)).tool_call_count === count);
/** Makes calls at once and prints their results in order. */
const gather = (...texts: string[]) => `${RAW_CLIENT}
calls = [Connection().send(request(text)) for text in ${JSON.stringify(texts)}]
print([c.read()[2] for c in calls])`;
const add = (a: unknown) => JSON.stringify({ tool_name: "add", input: { a } });
const IDS = ["call_001", "call_002", "call_003", "call_004", "call_005"];
const FIVE = gather(...IDS.map((_id, a) => add(a)));
const answersTo = (ids: string[]) => ids.map((call_id) => ({ call_id, outcome: { result_json: "7" } }));

describe("the calls of a pause", () => {
  it("are charged by one change of the ledger, each of them", async () => {
    const one = await system.execution();
    const { pending_call_ids } = pausedOf(await system.start(one, FIVE));
    expect(pending_call_ids).toEqual(IDS);
    expect(await recorded(one, IDS)).toEqual(IDS);
    expect(await recordOf(one)).toMatchObject({ rev: 1, request_count: 5, tool_call_ids: IDS });
    const result = endedOf(await system.resume(one, 2, IDS, { answers: answersTo(IDS) }));
    expect(result.stdout).toBe("['7', '7', '7', '7', '7']\n");
  });

  it("are all charged at the end of a program whose results came at once", async () => {
    for (let round = 0; round < 10; round++) {
      const one = await system.execution();
      pausedOf(await system.start(one, FIVE));
      endedOf(await system.resume(one, 2, IDS, { answers: answersTo(IDS) }));
      expect(await recordOf(one)).toMatchObject({ request_count: 5, tool_call_count: 5 });
    }
  });

  it("are recorded in as many requests as their sizes need, however large one of them is", async () => {
    const one = await system.execution();
    const largest = add("x".repeat(MAX_BYTES - add("").length));
    const spaced = add("é\n").replace("{", ' {\n "input": {"a": 0}, ');
    pausedOf(await system.start(one, gather(add("x".repeat(600)), largest, spaced, add("y".repeat(600)))));
    const ids = IDS.slice(0, 4);
    expect(await recorded(one, ids)).toEqual(ids);
    await charged(one, 4);
    const results = ids.map((call_id, at) => ({ call_id, result: at }));
    await system.answer(one, results);
    expect(endedOf(await system.resume(one, 2, ids)).stdout).toBe("['0', '1', '2', '3']\n");
    expect(await recordOf(one)).toMatchObject({ request_count: 4, tool_call_count: 4 });
  });

  it("are recorded once when tool call server and gateway come back", async () => {
    const one = await system.execution();
    await system.toolServer.kill();
    pausedOf(await system.start(one, FIVE));
    await charged(one, 5);
    await system.gateway.gateway.kill();
    await system.toolServer.restart();
    await system.gateway.restart();
    expect(await recorded(one, IDS)).toEqual(IDS);
    endedOf(await system.resume(one, 2, IDS, { answers: answersTo(IDS) }));
    expect(await recordOf(one)).toMatchObject({ request_count: 5, tool_call_count: 5 });
  });
});

describe("a call that is refused among others", () => {
  it.each([
    ["that the budget has room for", 1],
    ["that it has no room for", 5],
  ])("for want of budget ends the program, whose resume answers calls %s", async (_which, answered) => {
    const one = await system.execution();
    const before = await recordOf(one);
    await store.set(ledgerKey(one.grantId), JSON.stringify({ ...before, rev: 7, max_tool_calls: 3 }));
    pausedOf(await system.start(one, FIVE));
    await charged(one, 3);
    await eventually("three are recorded", async () => (await recorded(one)).length === 3);
    const ids = answered === 1 ? (await recorded(one)).slice(0, 1) : IDS;
    const result = endedOf(await system.resume(one, 2, ids, { answers: answersTo(ids) }));
    expect(result.programmatic_fault).toEqual({ type: "tool_limit" });
    expect((await recordOf(one)).tool_call_count).toBe(3);
  });

  it("because the gateway knows of no such tool takes the program its way to tools, and not the others' records", async () => {
    const { exchange, ...one } = await system.execution(TOOLS.slice(0, 1));
    const more = { ...one, exchange, tools: TOOLS };
    const lookUp = JSON.stringify({ tool_name: "look up", input: {} });
    pausedOf(await system.start(more, gather(add(1), lookUp, add(2))));
    const others = ["call_001", "call_003"];
    expect(await recorded(more, others)).toEqual(others);
    await charged(more, 2);
    await eventually("it is evicted", async () => (await system.active()).paused === 0);
    expect((await recordOf(more)).tool_call_ids.sort()).toEqual(others);
    expect((await system.resume(more, 2, others)).status).toBe(404);
  });
});
