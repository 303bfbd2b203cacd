import { readdirSync } from "node:fs";
import { Readable } from "node:stream";
import { ledgerKey, openCallback, sealCallback, sealSession } from "@svc/capabilities";
import { CALLBACK_TOKEN_HEADER, EXECUTION_ID_HEADER, newId, TOOL_CALL_ID_HEADER } from "@svc/contracts";
import { beginPost, refusesConnections } from "@svc/test-kit/components/begun-request";
import { keys } from "@svc/test-kit/components/gateway";
import { callIds } from "@svc/test-kit/components/tool-call-server";
import { grantWith } from "@svc/test-kit/credentials/grants";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answered, begin, end, made, recordOf, refusal, store } from "../support/tool-gateway.ts";

const now = () => Math.floor(Date.now() / 1000);

describe("a tool call through the gateway", () => {
  beforeAll(() => begin());
  afterAll(() => end());

  it("reaches the tool call server as it is, comes back with its result, and is counted", async () => {
    const execution = await made.start();
    const input = JSON.parse('{"__proto__":{"a":1},"text":"\\u0000ä😀","list":[null,1.5]}');
    const answer = made.call(execution, "call_001", input, { tool: "look up" });
    const [call] = (await made.server.pending(execution, ["call_001"], 5000)).pending_calls;
    expect([call?.tool_name, JSON.stringify(call?.tool_input)]).toEqual(["look up", JSON.stringify(input)]);
    await made.server.results(execution, [{ call_id: "call_001", result: input }]);
    expect((await answer).text).toBe(`{"success":true,"result":${JSON.stringify(input)},"is_error":false}`);
    expect(await recordOf(execution)).toMatchObject({
      exec_id: execution.execution,
      status: "active",
      request_count: 1,
      tool_call_count: 1,
      tool_call_ids: ["call_001"],
      upload_count: 0,
      read_count: 0,
    });
  });

  it("may carry exactly EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES and bring five megabytes back", async () => {
    const execution = await made.start();
    const room = 1_048_576 - '{"tool_name":"add","input":""}'.length;
    const result = "x".repeat(5_000_000);
    expect((await answered(execution, "a", result, "y".repeat(room))).body.result).toBe(result);
    expect(await refusal(made.call(execution, "b", "y".repeat(room + 1)))).toBe("413 tool_call_too_large");
    const endless = Readable.from(Array.from({ length: 100 }, () => "z".repeat(65_536)));
    expect(await refusal(made.call(execution, "b", 0, { raw: endless }))).toBe("413 tool_call_too_large");
    expect(await recordOf(execution)).toMatchObject({ tool_call_count: 1 });
  });

  it("that failed, or got no result in time, says so", async () => {
    const execution = await made.mint(await made.server.open({ timeout: 300 }));
    const failed = made.call(execution, "a");
    await made.server.pending(execution, ["a"], 5000);
    await made.server.results(execution, [{ call_id: "a", is_error: true, error_message: "no luck" }]);
    expect((await failed).body).toEqual({
      success: true,
      result: null,
      is_error: true,
      error_message: "no luck",
    });
    expect(await refusal(made.call(execution, "b"))).toBe("408 tool_call_timeout");
  });

  it("may hold 64 levels; one that is deeper or holds too many values is refused and costs nothing", async () => {
    const execution = await made.start();
    const raw = (input: string) => ({ raw: `{"tool_name":"add","input":${input}}` });
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    for (const input of [nested(65 + 1), nested(100_000), `[${"0,".repeat(300_000)}0]`]) {
      expect(await refusal(made.call(execution, "a", 0, raw(input)))).toBe("413 tool_call_too_large");
    }
    expect(await recordOf(execution)).toMatchObject({ request_count: 0, tool_call_ids: [] });
    const answer = made.call(execution, "a", 0, raw(nested(64)));
    await made.server.pending(execution, ["a"], 5000);
    await made.server.results(execution, [{ call_id: "a", result: 1 }]);
    expect((await answer).body.result).toBe(1);
  });

  it("of an undeclared tool is refused and costs nothing", async () => {
    const execution = await made.start();
    for (const tool of ["sub", "ADD", "add ", "__proto__", "constructor"]) {
      expect(await refusal(made.call(execution, "a", {}, { tool }))).toBe("403 tool_not_declared");
    }
    expect(await recordOf(execution)).toMatchObject({ request_count: 0, tool_call_ids: [] });
    expect((await made.server.pending(execution)).pending_calls).toEqual([]);
  });

  it("that is no call is refused and costs nothing", async () => {
    const execution = await made.start();
    const bodies = ["", "null", "[]", "{}", '{"tool_name":"add"}', '{"tool_name":["add"],"input":1}', "{"];
    for (const raw of bodies) expect((await made.call(execution, "a", 0, { raw })).status).toBe(400);
    for (const id of ["a b", "*", "x".repeat(65)]) {
      expect(await refusal(made.call(execution, id))).toBe("400 invalid_id");
    }
    expect(await refusal(made.call({ ...execution, execution: "short" }, "a"))).toBe("400 invalid_id");
    expect((await made.post("/tool-call", "{}", {})).body.error).toBe("missing_headers");
    expect(await recordOf(execution)).toMatchObject({ request_count: 0 });
  });

  it("with a token that is forged, of another kind, expired or of another execution is refused", async () => {
    const [execution, other] = [await made.start(), await made.start()];
    const callback = openCallback(keys, execution.sealed, now());
    const grant = grantWith({ exec_id: execution.execution });
    const tokens: [string, string][] = [
      ["", "400 malformed"],
      ["ceg1.a.b.c", "400 malformed"],
      [`${execution.sealed}A`, "400 malformed"],
      [execution.token, "400 malformed"],
      [sealSession(keys, grant, newId(), "read"), "403 wrong_type"],
      [sealCallback(keys, callback, now() - 100, now() - 31), "401 expired"],
      [sealCallback(keys, callback, now() + 60, now() + 100), "400 malformed"],
      [other.sealed, "401 callback_refused"],
    ];
    for (const [sealed, expected] of tokens) {
      expect(await refusal(made.call({ execution: execution.execution, sealed }, "a"))).toBe(expected);
    }
    const unknown = await made.mint({ execution: newId(), token: "made up" });
    expect(await refusal(made.call(unknown, "a"))).toBe("401 callback_refused");
  });

  it("of a token whose record is revoked, gone or expired is refused", async () => {
    const [revoked, gone, short] = [await made.start(), await made.start(), await made.start()];
    await made.internal(`/internal/egress-grants/${revoked.grantId}/revoke`, { reason: "cancelled" });
    expect(await refusal(made.call(revoked, "a"))).toBe("403 revoked");
    await store.del(ledgerKey(gone.grantId));
    expect(await refusal(made.call(gone, "a"))).toBe("403 missing");
    const record = await recordOf(short);
    await store.set(ledgerKey(short.grantId), JSON.stringify({ ...record, rev: 9, exp: now() - 31 }));
    expect(await refusal(made.call(short, "a"))).toBe("401 expired");
  });

  it("that is repeated is charged once, also when the budget is spent", async () => {
    const execution = await made.start();
    await store.set(
      ledgerKey(execution.grantId),
      JSON.stringify({ ...(await recordOf(execution)), rev: 7, max_tool_calls: 2 }),
    );
    const first = made.call(execution, "a", { x: 1 });
    await made.server.pending(execution, ["a"], 5000);
    const again = Array.from({ length: 5 }, () => made.call(execution, "a", { x: 1 }));
    expect((await answered(execution, "b", 2)).body.result).toBe(2);
    expect(await refusal(made.call(execution, "c"))).toBe("403 tool_call_budget");
    await made.server.results(execution, [{ call_id: "a", result: "r" }]);
    for (const answer of [first, ...again]) expect((await answer).body.result).toBe("r");
    expect((await made.call(execution, "a", { x: 1 })).body.result).toBe("r");
    expect(await recordOf(execution)).toMatchObject({ tool_call_count: 2, request_count: 2 });
  });

  it("shares the last of its budget exactly among many at once", async () => {
    const execution = await made.start();
    await store.set(
      ledgerKey(execution.grantId),
      JSON.stringify({ ...(await recordOf(execution)), rev: 7, max_tool_calls: 10 }),
    );
    const ids = callIds(64);
    const answers = ids.map((id) => refusal(made.call(execution, id)));
    const pending = async () => (await made.server.pending(execution)).pending_calls.length;
    await expect.poll(pending, { timeout: 30_000 }).toBe(10);
    const counted = async () => (await recordOf(execution)).tool_call_count;
    await expect.poll(counted, { timeout: 30_000 }).toBe(10);
    await made.server.close(execution);
    const counts = Object.groupBy(await Promise.all(answers), (outcome) => outcome);
    expect(counts["403 tool_call_budget"]).toHaveLength(54);
    expect(counts["404 execution_not_found"]).toHaveLength(10);
  });

  it("of 200 in one session reaches its own result", async () => {
    const execution = await made.start();
    const ids = callIds(200);
    const answers = ids.map((id) => made.call(execution, id, { id }));
    const { pending_calls } = await made.server.pending(execution, ids, 20_000);
    expect(pending_calls.map(({ call_id }) => call_id)).toEqual(ids);
    const results = pending_calls.map(({ call_id, tool_input }) => ({ call_id, result: [tool_input] }));
    await made.server.results(execution, results.reverse());
    expect((await Promise.all(answers)).map(({ body }) => body.result)).toEqual(ids.map((id) => [{ id }]));
  });

  it("is not held up by a flood of calls that are refused", async () => {
    const [execution, other] = [await made.start(), await made.start()];
    const flood = Array.from({ length: 500 }, (_, index) =>
      refusal(made.call({ execution: execution.execution, sealed: other.sealed }, `call_${index}`)),
    );
    expect((await answered(execution, "a", "r")).body.result).toBe("r");
    expect(new Set(await Promise.all(flood))).toEqual(new Set(["401 callback_refused"]));
    expect(await recordOf(execution)).toMatchObject({ request_count: 1 });
    expect(await recordOf(other)).toMatchObject({ request_count: 0 });
  });

  it("ends at the tool call server when its caller goes, and is still there for a repeat", async () => {
    const execution = await made.start();
    const fds = () => [made.pid, made.server.pid].map((pid) => readdirSync(`/proc/${pid}/fd`).length);
    const leaving = new AbortController();
    const ids = callIds(50);
    const gone = ids.map((id) =>
      made.call(execution, id, {}, { signal: leaving.signal }).catch(() => "gone"),
    );
    await made.server.pending(execution, ids, 5000);
    const [gateway = 0, server = 0] = fds();
    leaving.abort();
    await Promise.all(gone);
    await expect.poll(() => fds()[0]).toBeLessThanOrEqual(gateway - 98);
    await expect.poll(() => fds()[1]).toBeLessThanOrEqual(server - 49);
    expect((await answered(execution, "call_007", "r")).body.result).toBe("r");
  });
});

describe("while a call waits", () => {
  beforeEach(() => begin());
  afterEach(() => end());

  it("the tool call server may be killed: the call fails at once and its repeat gets the result", async () => {
    const execution = await made.start();
    const lost = refusal(made.call(execution, "a", { x: 1 }));
    await made.server.pending(execution, ["a"], 5000);
    await made.server.kill();
    expect(await lost).toBe("502 upstream_unavailable");
    expect(await refusal(made.call(execution, "a", { x: 1 }))).toBe("502 upstream_unavailable");
    await made.server.restart();
    expect((await answered(execution, "a", "r", { x: 1 })).body.result).toBe("r");
    expect(await recordOf(execution)).toMatchObject({ tool_call_count: 1, request_count: 1 });
  });

  it("the gateway may be killed, or stopped in order: a repeat gets the result and is not charged again", async () => {
    const execution = await made.start();
    const lost = made.call(execution, "a").catch(() => "lost");
    await made.server.pending(execution, ["a"], 5000);
    await made.kill();
    expect(await lost).toBe("lost");
    await made.restart();
    const stopped = refusal(made.call(execution, "b"));
    await made.server.pending(execution, ["b"], 5000);
    await made.kill("SIGTERM");
    expect(await stopped).toBe("503 shutting_down");
    await made.restart();
    for (const id of ["a", "b"]) expect((await answered(execution, id, id)).body.result).toBe(id);
    expect(await recordOf(execution)).toMatchObject({ tool_call_count: 2, request_count: 2 });
  });

  it("the gateway stops at once, also when a further call comes on an open connection", async () => {
    const { execution, sealed } = await made.start();
    const late = await beginPost(`${made.url}/tool-call`, {
      [EXECUTION_ID_HEADER]: execution,
      [CALLBACK_TOKEN_HEADER]: sealed,
      [TOOL_CALL_ID_HEADER]: "a",
    });
    const stopped = made.kill("SIGTERM");
    await expect.poll(() => refusesConnections(made.url)).toBe(true);
    expect(await late.finish({ tool_name: "add", input: {} })).toBe("503 shutting_down");
    await stopped;
  });

  it("the store may be killed and come back: the call gets its result", async () => {
    const execution = await made.start();
    const answer = made.call(execution, "a");
    await made.server.pending(execution, ["a"], 5000);
    // What was confirmed is on disk: how much a crash may lose is a setting of the store.
    await store.config("SET", "appendfsync", "always");
    await made.redis.kill();
    expect(await refusal(made.call(execution, "b"))).toBe("503 store_unavailable");
    await made.redis.start();
    await expect
      .poll(async () => (await made.server.results(execution, [{ call_id: "a", result: 1 }])).status, {
        timeout: 20_000,
      })
      .toBe(200);
    expect((await answer).body.result).toBe(1);
    expect((await answered(execution, "b", 2)).body.result).toBe(2);
  });
});
