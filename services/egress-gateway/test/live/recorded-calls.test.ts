/** Tool calls that are recorded and charged together, all or none, by one request that waits for no result. */
import { type LedgerRecord, ledgerKey } from "@svc/capabilities";
import { GRANT_HEADER, newId, type RecordToolCalls, type RegisteredGrant } from "@svc/contracts";
import { registration } from "@svc/test-kit/components/gateway";
import type { Execution } from "@svc/test-kit/components/gateway-tool-calls";
import { callIds, toRecord } from "@svc/test-kit/components/tool-call-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { begin, end, made, recordOf, refusal, store } from "../support/tool-gateway.ts";

beforeAll(() => begin({ EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES: "2000" }));
afterAll(() => end());

const change = async (execution: Execution, changed: Partial<LedgerRecord>) =>
  store.set(
    ledgerKey(execution.grantId),
    JSON.stringify({ ...(await recordOf(execution)), rev: 7, ...changed }),
  );
const pending = async (execution: Execution) =>
  (await made.server.pending(execution)).pending_calls.map(({ call_id }) => call_id);
/** How much was charged and what was recorded. */
const state = async (execution: Execution) => {
  const { request_count, tool_call_count, tool_call_ids } = await recordOf(execution);
  expect(tool_call_ids).toHaveLength(tool_call_count);
  expect(request_count).toBe(tool_call_count);
  return { charged: tool_call_count, recorded: await pending(execution) };
};
const NOTHING = { charged: 0, recorded: [] };
const IDS = callIds(5);
const CALLS = toRecord(IDS, { x: 1 });

describe("calls that are recorded together", () => {
  it("are charged one by one, and cost no more when they are repeated or waited for", async () => {
    const execution = await made.start();
    const answer = await made.record(execution, CALLS);
    expect([answer.status, answer.body]).toEqual([200, { success: true }]);
    expect(await state(execution)).toEqual({ charged: 5, recorded: IDS });
    const again = await Promise.all([1, 2, 3].map(() => made.record(execution, CALLS)));
    expect(again.map(({ status }) => status)).toEqual([200, 200, 200]);
    const waits = made.call(execution, "call_002", { x: 1 });
    await made.server.results(execution, [{ call_id: "call_002", result: 2 }]);
    expect((await waits).body.result).toBe(2);
    expect((await made.record(execution, [...CALLS, ...toRecord(["more"])])).status).toBe(200);
    expect((await state(execution)).charged).toBe(6);
  });

  it("are charged and recorded once although the answer was lost with gateway or tool call server", async () => {
    const execution = await made.start();
    await made.server.kill();
    expect(await refusal(made.record(execution, CALLS))).toBe("502 upstream_unavailable");
    await made.server.restart();
    expect((await made.record(execution, CALLS)).status).toBe(200);
    await made.kill();
    await made.restart();
    expect((await made.record(execution, CALLS)).status).toBe(200);
    expect(await state(execution)).toEqual({ charged: 5, recorded: IDS });
  });

  it("are paid by the grant that is shown, when it is of the same execution", async () => {
    const execution = await made.start();
    const granted = async (exec_id: string) => {
      const claims = { exec_id, max_tool_calls: 5 };
      const { body } = await made.internal("/internal/egress-grants", registration([], claims));
      return body as unknown as RegisteredGrant;
    };
    const [own, foreign] = [await granted(execution.execution), await granted(newId())];
    const record = (grant: string) => made.record(execution, CALLS, { [GRANT_HEADER]: grant });
    expect(await refusal(record(foreign.egressGrantToken))).toBe("401 callback_refused");
    expect(await refusal(record("x"))).toBe("400 malformed");
    expect((await record(own.egressGrantToken)).status).toBe(200);
    expect((await recordOf({ grantId: own.grant_id })).tool_call_count).toBe(5);
    expect((await recordOf(execution)).tool_call_count).toBe(0);
  });

  it("share the last of a budget exactly with others: a request has room for all of its calls or is not charged", async () => {
    const execution = await made.start();
    await change(execution, { max_tool_calls: 12 });
    const ids = callIds(50);
    const requests = Array.from({ length: 10 }, (_, at) => toRecord(ids.slice(at * 5, at * 5 + 5)));
    const outcomes = await Promise.all(requests.map((calls) => refusal(made.record(execution, calls))));
    expect(outcomes.filter((outcome) => outcome === "403 tool_call_budget")).toHaveLength(8);
    const { charged, recorded } = await state(execution);
    expect([charged, recorded.length]).toEqual([10, 10]);
  });
});

describe("nothing is charged and nothing recorded of calls", () => {
  const one = (call_id: string, tool_name: string, input: unknown = 1) => ({
    call_id,
    call: { tool_name, input },
  });
  it.each<[string, RecordToolCalls["calls"] | string, string]>([
    ["one of which is of an undeclared tool", [...CALLS, one("z", "sub")], "403 tool_not_declared"],
    ["one of which is too large", [...CALLS, one("z", "add", "x".repeat(2000))], "413 tool_call_too_large"],
    ["that are too large together", toRecord(IDS, "x".repeat(400)), "413 tool_call_too_large"],
    ["two of which have one id", [...CALLS, one("call_001", "add")], "400 invalid_request"],
    ["one of which has an id that is none", [...CALLS, one("../a", "add")], "400 invalid_request"],
    [
      "one of which is none",
      `{"calls":[${JSON.stringify(CALLS[0])},{"call_id":"z"}]}`,
      "400 invalid_request",
    ],
    ["that are none", '{"calls":[]}', "400 invalid_request"],
    ["in a list without a name", JSON.stringify(CALLS), "400 invalid_json"],
    ["in a text that is not JSON", '{"calls":[', "400 invalid_json"],
  ])("%s", async (_which, calls, expected) => {
    const execution = await made.start();
    expect(await refusal(made.record(execution, calls))).toBe(expected);
    expect(await state(execution)).toEqual(NOTHING);
    expect((await made.record(execution, CALLS)).status).toBe(200);
    expect(await state(execution)).toEqual({ charged: 5, recorded: IDS });
  });

  it.each([
    ["tool_call_budget", { max_tool_calls: 4 }],
    ["request_budget", { max_requests: 4 }],
  ])("for which the %s has no room", async (reason, limits) => {
    const execution = await made.start();
    await change(execution, limits);
    expect(await refusal(made.record(execution, CALLS))).toBe(`403 ${reason}`);
    expect(await state(execution)).toEqual(NOTHING);
    expect((await made.record(execution, CALLS.slice(1))).status).toBe(200);
  });

  it("whose token is of another execution, forged, or of a revoked or lost record", async () => {
    const [execution, other] = [await made.start(), await made.start()];
    for (const sealed of [`${execution.sealed}A`, execution.token, ""]) {
      expect(await refusal(made.record({ ...execution, sealed }, CALLS))).toBe("400 malformed");
    }
    expect(await refusal(made.record({ ...execution, sealed: other.sealed }, CALLS))).toBe(
      "401 callback_refused",
    );
    expect(await refusal(made.record({ ...execution, execution: "short" }, CALLS))).toBe("400 invalid_id");
    expect(await refusal(made.post("/tool-calls", JSON.stringify({ calls: CALLS }), {}))).toBe(
      "400 missing_headers",
    );
    expect(await state(execution)).toEqual(NOTHING);
    await made.internal(`/internal/egress-grants/${execution.grantId}/revoke`, {});
    await store.del(ledgerKey(other.grantId));
    expect(await refusal(made.record(execution, CALLS))).toBe("403 revoked");
    expect(await refusal(made.record(other, CALLS))).toBe("403 missing");
    expect([await pending(execution), await pending(other)]).toEqual([[], []]);
  });
});
