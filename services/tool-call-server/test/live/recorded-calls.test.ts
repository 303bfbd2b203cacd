/** Calls that are recorded together, by one request that waits for no result. */
import { MAX_RECORDED_CALLS, newCallbackToken, newId } from "@svc/contracts";
import {
  callIds,
  type Exchange,
  startServers,
  type ToolCallServer,
  toRecord,
} from "@svc/test-kit/components/tool-call-server";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";

let started: Awaited<ReturnType<typeof startServers>>;
let server: ToolCallServer;

beforeAll(async () => {
  started = await startServers(1, { PTC_MAX_CALLS: "10", PTC_MAX_HISTORY_BYTES: "10kb" });
  [server] = started.servers as [ToolCallServer];
});
afterAll(() => started.stop());

const idsOf = async (exchange: Exchange) =>
  (await server.pending(exchange)).pending_calls.map(({ call_id }) => call_id);
const refusal = async (answer: ReturnType<ToolCallServer["record"]>) => {
  const { status, body } = await answer;
  return `${status} ${body.error}`;
};
const call = (call_id: string, input: unknown = { x: 1 }, tool_name = "add") => ({
  call_id,
  call: { tool_name, input },
});
const [A, B, C] = [call("a"), call("b"), call("c")];

describe("calls that are recorded together", () => {
  it("are listed, with their arguments, and answered one by one", async () => {
    const exchange = await server.open();
    const input = '{"__proto__":{"a":1},"text":"\\u0000\u00e4\u{1f600}","list":[null,1.5]}';
    const calls = callIds(5).map(
      (id) => `{"call_id":"${id}","call":{"tool_name":"look up","input":${input}}}`,
    );
    const answer = await server.record(exchange, `{"calls":[${calls.join(", ")}]}`);
    expect([answer.status, answer.body]).toEqual([200, { success: true }]);
    const listed = await server.send("GET", `/sessions/${exchange.execution}/pending`);
    for (const id of callIds(5)) {
      expect(listed.text).toContain(`{"call_id":"${id}","tool_name":"look up","tool_input":${input},`);
    }
    await server.results(exchange, [{ call_id: "call_003", result: 3 }]);
    expect(await idsOf(exchange)).toEqual(["call_001", "call_002", "call_004", "call_005"]);
    const again = await server.call(exchange, "call_003", undefined, {
      raw: `{"tool_name":"look up","input":${input}}`,
    });
    expect(again.body.result).toBe(3);
  });

  it("may come while their exchange is being opened", async () => {
    const [exchange, never] = [newId(), newId()].map((execution) => ({
      execution,
      token: newCallbackToken(),
    })) as [Exchange, Exchange];
    const early = server.record(exchange, [A, B]);
    const refused = refusal(server.record(never, [A, B]));
    await server.open({ execution_id: exchange.execution, callback_token: exchange.token });
    expect((await early).status).toBe(200);
    expect(await idsOf(exchange)).toEqual(["a", "b"]);
    expect(await refused).toBe("401 callback_refused");
  });

  it("are the same when they are repeated, alone or with others, before and after their results", async () => {
    const exchange = await server.open();
    const before = await server.metric("svc_tool_calls_total");
    expect((await server.record(exchange, [A, B])).status).toBe(200);
    expect((await server.record(exchange, [A, B])).status).toBe(200);
    await server.results(exchange, [{ call_id: "a", result: 1 }]);
    const spelled = '{"call": {"input": {"x" :1.0}, "tool_name":"add"}, "call_id":"a"}';
    expect((await server.record(exchange, `{"calls":[${JSON.stringify(C)}, ${spelled}]}`)).status).toBe(200);
    expect(await idsOf(exchange)).toEqual(["b", "c"]);
    expect((await server.call(exchange, "a", { x: 1 })).body.result).toBe(1);
    expect(await server.metric("svc_tool_calls_total")).toBe(before + 3);
  });
});

describe("calls that are repeated with other arguments", () => {
  /** A server with room for large calls, and its store. */
  async function startRoomy() {
    const { servers, redis, stop } = await startServers(1);
    const store = new Redis(redis.url);
    onTestFinished(async () => {
      store.disconnect();
      await stop();
    });
    return { roomy: servers[0] as ToolCallServer, store };
  }

  it("are refused without that what is recorded of them is read", async () => {
    const { roomy, store } = await startRoomy();
    const exchange = await roomy.open();
    const ids = callIds(8);
    const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await store.info("stats"))?.[1]);
    expect((await roomy.record(exchange, toRecord(ids, "x".repeat(100_000)))).status).toBe(200);
    const before = await sent();
    expect(await refusal(roomy.record(exchange, toRecord(ids)))).toBe("400 invalid_request");
    expect((await sent()) - before).toBeLessThan(100_000);
  });
});

it("calls are recorded also while no more may wait for their results", async () => {
  const exchange = await server.open();
  const calls = Array.from({ length: 17 }, () => server.call(exchange, "a", { x: 1 }));
  expect((await Promise.race(calls)).status).toBe(503);
  expect((await server.record(exchange, [A, B])).status).toBe(200);
  await server.results(exchange, [{ call_id: "a", result: 1 }]);
  const answers = await Promise.all(calls);
  expect(answers.filter(({ body }) => body.result === 1)).toHaveLength(16);
});

describe("calls one of which is refused", () => {
  it.each([
    [
      "is of an undeclared tool",
      { call_id: "z", call: { tool_name: "sub", input: 1 } },
      "403 tool_not_declared",
    ],
    [
      "is known as another call",
      { call_id: "a", call: { tool_name: "add", input: 2 } },
      "400 invalid_request",
    ],
    [
      "has an id that is none",
      { call_id: "a b", call: { tool_name: "add", input: 1 } },
      "400 invalid_request",
    ],
    ["has no arguments", { call_id: "z", call: { tool_name: "add" } as never }, "400 invalid_request"],
    [
      "has too large arguments",
      { call_id: "z", call: { tool_name: "add", input: "x".repeat(10_240) } },
      "413 tool_call_too_large",
    ],
    [
      "has the id of another of them",
      { call_id: "b", call: { tool_name: "add", input: { x: 1 } } },
      "400 invalid_request",
    ],
  ])("because it %s are not recorded at all", async (_why, wrong, expected) => {
    const exchange = await server.open();
    await server.record(exchange, [A]);
    const before = await server.metric("svc_tool_calls_total");
    for (const calls of [
      [wrong, B, C],
      [B, wrong, C],
      [B, C, wrong],
    ]) {
      expect(await refusal(server.record(exchange, calls))).toBe(expected);
    }
    expect(await idsOf(exchange)).toEqual(["a"]);
    expect(await server.metric("svc_tool_calls_total")).toBe(before);
    expect((await server.record(exchange, [B, C])).status).toBe(200);
    expect(await idsOf(exchange)).toEqual(["a", "b", "c"]);
  });

  it("for its undeclared tool make the exchange tell of that tool", async () => {
    const exchange = await server.open();
    await server.record(exchange, [A, { call_id: "z", call: { tool_name: "sub", input: 1 } }]);
    expect(await server.pending(exchange)).toMatchObject({ unregistered_tool: "sub", pending_calls: [] });
  });

  it("because they are one too many, or too large together, are not recorded at all", async () => {
    const exchange = await server.open();
    expect((await server.record(exchange, toRecord(callIds(8)))).status).toBe(200);
    expect(await refusal(server.record(exchange, [A, B, C]))).toBe("400 invalid_request");
    expect((await server.record(exchange, [A, B])).status).toBe(200);
    expect((await server.record(exchange, toRecord(callIds(8)))).status).toBe(200);

    const other = await server.open();
    const large = toRecord(callIds(3), "x".repeat(3500));
    expect(await refusal(server.record(other, large))).toBe("413 tool_call_too_large");
    expect(await idsOf(other)).toEqual([]);
    expect((await server.record(other, large.slice(1))).status).toBe(200);
  });
});

describe("a request to record calls", () => {
  it("with another token, without headers, or that is none, is refused", async () => {
    const [one, other] = [await server.open(), await server.open()];
    for (const token of [other.token, "", one.token.slice(1)]) {
      expect(await refusal(server.record({ ...one, token }, [A]))).toBe("401 callback_refused");
    }
    expect(await refusal(server.record({ ...one, execution: "short" }, [A]))).toBe("400 invalid_id");
    expect(await refusal(server.send("POST", "/tool-calls", { calls: [A] }))).toBe("400 missing_headers");
    const many = toRecord(callIds(MAX_RECORDED_CALLS + 1));
    for (const body of ["", "{", "[]", "{}", '{"calls":{}}', '{"calls":[]}', '{"calls":[null]}', many]) {
      expect((await server.record(one, body)).status).toBe(400);
    }
    const deep = `{"calls":[{"call_id":"a","call":{"tool_name":"add","input":${"[".repeat(400_000)}${"]".repeat(400_000)}}}]}`;
    expect((await server.record(one, deep)).status).toBe(400);
    expect(await refusal(server.record(one, toRecord(["a"], "x".repeat(2 ** 20))))).toBe(
      "413 request_too_large",
    );
    expect(await idsOf(one)).toEqual([]);
  });
});
