import { setTimeout as sleep } from "node:timers/promises";
import { newCallbackToken, newId } from "@svc/contracts";
import {
  callIds,
  type Exchange,
  startServers,
  type ToolCallServer,
} from "@svc/test-kit/components/tool-call-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let started: Awaited<ReturnType<typeof startServers>>;
let server: ToolCallServer;

beforeAll(async () => {
  started = await startServers(1, { PTC_MAX_CALLS: "200", PTC_MAX_HISTORY_BYTES: "20mb" });
  [server] = started.servers as [ToolCallServer];
});
afterAll(() => started.stop());

const idsOf = async (exchange: Exchange, ids: string[] = [], waitMs = 0) =>
  (await server.pending(exchange, ids, waitMs)).pending_calls.map(({ call_id }) => call_id);

describe("a tool call", () => {
  it("is listed until its result comes, and is answered with it", async () => {
    const exchange = await server.open();
    const answer = server.call(exchange, "call_001", { a: 1 }, { tool: "look up" });
    const pending = await server.pending(exchange, ["call_001"], 5000);
    expect(pending).toEqual({
      status: "active",
      pending_calls: [
        { call_id: "call_001", tool_name: "look up", tool_input: { a: 1 }, timestamp: expect.any(Number) },
      ],
    });
    expect(Math.abs(Number(pending.pending_calls[0]?.timestamp) - Date.now())).toBeLessThan(10_000);
    const given = await server.results(exchange, [{ call_id: "call_001", result: [1, "two"] }]);
    expect(given.body).toEqual({ success: true, processed: 1 });
    expect((await answer).body).toEqual({ success: true, result: [1, "two"], is_error: false });
    expect(await idsOf(exchange)).toEqual([]);
  });

  it("that comes while its exchange is being opened waits for it, and for a short time only", async () => {
    const [exchange, never] = [newId(), newId()].map((execution) => ({
      execution,
      token: newCallbackToken(),
    }));
    const early = server.call(exchange as Exchange, "early");
    const refused = server.call(never as Exchange, "early");
    const { execution, token } = exchange as Exchange;
    const wrong = server.call({ execution, token: newCallbackToken() }, "wrong");
    await sleep(100);
    await server.open({ execution_id: execution, callback_token: token });
    expect((await server.pending(exchange as Exchange, ["early"], 5000)).pending_calls).toHaveLength(1);
    await server.results(exchange as Exchange, [{ call_id: "early", result: 1 }]);
    expect((await early).body.result).toBe(1);
    for (const answer of await Promise.all([wrong, refused])) {
      expect([answer.status, answer.body.error]).toEqual([401, "callback_refused"]);
    }
  });

  it("that failed is answered with its message; a result that is absent is null", async () => {
    const exchange = await server.open();
    const answers = ["c1", "c2"].map((id) => server.call(exchange, id));
    await server.pending(exchange, ["c1", "c2"], 5000);
    await server.results(exchange, [
      { call_id: "c1", is_error: true, error_message: "no \u0000 luck" },
      { call_id: "c2" },
    ]);
    expect((await Promise.all(answers)).map(({ body }) => body)).toEqual([
      { success: true, result: null, is_error: true, error_message: "no \u0000 luck" },
      { success: true, result: null, is_error: false },
    ]);
  });

  it.each([
    ["null", "null"],
    ["a number", "-1.5e-7"],
    ["a string that holds JSON", '"{\\"a\\":1}"'],
    ["keys that a prototype has", '{"__proto__":{"x":1},"constructor":{"prototype":1},"toString":null}'],
    ["keys that look like numbers and an empty one", '{"1":"a","2":"b","":"c"}'],
    ["text of any kind", '"\\u0000\\ud83d\\ude00\\ud800 é\\u2028"'],
    ["deep nesting", `${"[".repeat(64)}${"]".repeat(64)}`],
  ])("keeps %s as it is, as arguments and as result", async (_what, json) => {
    const exchange = await server.open();
    const text = JSON.stringify(JSON.parse(json));
    const answer = server.call(exchange, "c", undefined, { raw: `{"tool_name":"add","input":${json}}` });
    await server.pending(exchange, ["c"], 5000);
    const listed = await server.send("GET", `/sessions/${exchange.execution}/pending`);
    expect(listed.text).toContain(`"tool_input":${text},"timestamp"`);
    const body = `{"results":[{"call_id":"c","result":${json}}]}`;
    expect((await server.send("POST", `/sessions/${exchange.execution}/results`, body)).status).toBe(200);
    expect((await answer).text).toBe(`{"success":true,"result":${text},"is_error":false}`);
  });

  it("may have arguments of a megabyte and a result of five", async () => {
    const exchange = await server.open();
    const input = { text: "ä".repeat(500_000) };
    const result = "x".repeat(5_000_000);
    const answer = server.call(exchange, "c", input);
    const [call] = (await server.pending(exchange, ["c"], 5000)).pending_calls;
    expect(call?.tool_input).toEqual(input);
    await server.results(exchange, [{ call_id: "c", result }]);
    expect((await answer).body.result).toBe(result);
  });

  it("that is repeated gets the same result, before and after it came, and is counted once", async () => {
    const exchange = await server.open();
    const before = await server.metric("svc_tool_calls_total");
    const first = server.call(exchange, "c", { a: 1, b: [2] });
    await server.pending(exchange, ["c"], 5000);
    const second = server.call(exchange, "c", undefined, {
      raw: '{"input": {"b":[2], "a":1}, "tool_name":"add"}',
    });
    await server.results(exchange, [{ call_id: "c", result: "r" }]);
    const third = server.call(exchange, "c", { a: 1, b: [2] });
    for (const answer of [first, second, third]) expect((await answer).body.result).toBe("r");
    expect(await server.metric("svc_tool_calls_total")).toBe(before + 1);
  });

  it("cannot be another call under a known id", async () => {
    const exchange = await server.open();
    const first = server.call(exchange, "c", { a: 1 });
    await server.pending(exchange, ["c"], 5000);
    expect((await server.call(exchange, "c", { a: 2 })).status).toBe(400);
    expect((await server.call(exchange, "c", { a: 1 }, { tool: "look up" })).status).toBe(400);
    await server.results(exchange, [{ call_id: "c", result: 1 }]);
    expect((await first).body.result).toBe(1);
  });
});

describe("results", () => {
  it("stay as they first came; `processed` says how many of the given ones hold", async () => {
    const exchange = await server.open();
    const answers = ["a", "b"].map((id) => server.call(exchange, id));
    await server.pending(exchange, ["a", "b"], 5000);
    const processed = async (given: Parameters<ToolCallServer["results"]>[1]) =>
      (await server.results(exchange, given)).body.processed;
    expect(await processed([{ call_id: "a", result: { x: 1 } }])).toBe(1);
    expect(await processed([{ call_id: "a", result: { x: 1 } }])).toBe(1);
    expect(await processed([{ call_id: "a", result: { x: 2 } }])).toBe(0);
    const more = [
      { call_id: "a", result: "other" },
      { call_id: "b", result: 2 },
      { call_id: "early", result: 3 },
    ];
    expect(await processed(more)).toBe(2);
    expect((await Promise.all(answers)).map(({ body }) => body.result)).toEqual([{ x: 1 }, 2]);
    expect((await server.call(exchange, "early")).body.result).toBe(3);
    expect(await idsOf(exchange)).toEqual([]);
  });

  it("of an unknown or ended exchange are refused", async () => {
    const nobody = { execution: newId(), token: "" };
    expect((await server.results(nobody, [{ call_id: "a" }])).status).toBe(404);
    const exchange = await server.open();
    await server.close(exchange);
    expect((await server.results(exchange, [{ call_id: "a" }])).body.error).toBe("execution_not_found");
  });
});

describe("the pending calls", () => {
  it("of a batch are waited for, in the order of their ids, while other calls stay out", async () => {
    const exchange = await server.open();
    const ids = callIds(1001).slice(-3);
    const waited = idsOf(exchange, ids, 10_000);
    const order = [ids[2], "call_005", ids[0], ids[1]] as string[];
    const answers: Promise<unknown>[] = [];
    for (const id of order) {
      answers.push(server.call(exchange, id));
      await server.pending(exchange, [id], 5000);
    }
    expect(await waited).toEqual(["call_999", "call_1000", "call_1001"]);
    expect(await idsOf(exchange)).toEqual(["call_005", "call_999", "call_1000", "call_1001"]);
    await server.results(exchange, [{ call_id: "call_1000" }]);
    expect(await idsOf(exchange, ids)).toEqual(["call_999", "call_1001"]);
    await server.close(exchange);
    await Promise.all(answers);
  });

  it("are what there is when the time is over", async () => {
    const exchange = await server.open();
    const answer = server.call(exchange, "a");
    await server.pending(exchange, ["a"], 5000);
    const began = performance.now();
    expect(await idsOf(exchange, ["a", "b"], 300)).toEqual(["a"]);
    const waited = performance.now() - began;
    expect(waited).toBeGreaterThan(250);
    expect(waited).toBeLessThan(3000);
    await server.close(exchange);
    await answer;
  });

  it("tell of an undeclared tool at once, and the call is refused and not recorded", async () => {
    const exchange = await server.open();
    const waited = server.pending(exchange, ["c1"], 10_000);
    const refused = await server.call(exchange, "c1", {}, { tool: 'rm "-rf"' });
    expect([refused.status, refused.body.error]).toEqual([403, "tool_not_declared"]);
    expect(await waited).toEqual({
      status: "unregistered_tool",
      unregistered_tool: 'rm "-rf"',
      pending_calls: [],
    });
    await server.call(exchange, "c2", {}, { tool: "another" });
    expect((await server.pending(exchange)).unregistered_tool).toBe('rm "-rf"');
  });
});

describe("the end of an exchange", () => {
  it("ends its waits, makes its token worthless and can be repeated", async () => {
    const exchange = await server.open();
    const [call, listing] = [
      server.call(exchange, "a"),
      server.send("GET", `/sessions/${exchange.execution}/pending?wait_ms=9000&call_ids=b`),
    ];
    await server.pending(exchange, ["a"], 5000);
    for (const _ of [1, 2]) expect((await server.close(exchange)).body).toEqual({ success: true });
    for (const answer of [await call, await listing]) {
      expect([answer.status, answer.body.error]).toEqual([404, "execution_not_found"]);
    }
    expect((await server.call(exchange, "a")).status).toBe(401);
  });

  it("is what opening it anew means for the one before", async () => {
    const before = await server.open();
    const call = server.call(before, "a");
    await server.pending(before, ["a"], 5000);
    const after = await server.open({ execution_id: before.execution });
    expect((await call).status).toBe(404);
    expect((await server.call(before, "a")).status).toBe(401);
    expect(await idsOf(after)).toEqual([]);
  });
});

describe("a hostile caller", () => {
  it("with a token that is forged or of another execution is refused", async () => {
    const [one, other] = [await server.open(), await server.open()];
    const { execution } = one;
    for (const token of [other.token, "", "x", one.token.slice(1), `${one.token}=`]) {
      const answer = await server.call({ execution, token }, "a");
      expect([answer.status, answer.body.error]).toEqual([401, "callback_refused"]);
    }
    expect((await server.call({ execution: newId(), token: one.token }, "a")).status).toBe(401);
    expect(await idsOf(one)).toEqual([]);
  });

  it("with ids that are none, or without headers, is refused", async () => {
    const exchange = await server.open();
    for (const id of ["a b", "*", "x".repeat(65), "a:b", "../a"]) {
      expect((await server.call(exchange, id)).body.error).toBe("invalid_id");
    }
    expect((await server.call({ ...exchange, execution: "short" }, "a")).body.error).toBe("invalid_id");
    expect((await server.send("POST", "/tool-call", {})).status).toBe(400);
    expect((await server.send("GET", "/sessions/short/pending")).body.error).toBe("invalid_id");
    expect(
      (await server.send("GET", `/sessions/${exchange.execution}/pending?wait_ms=-1&call_ids=a%20b`)).status,
    ).toBe(400);
  });

  it("with a body that is no call, too large or too deep is refused", async () => {
    const exchange = await server.open();
    const bodies = ["", "null", "[]", "{}", '{"tool_name":"add"}', '{"tool_name":1,"input":1}', "\xff", "{"];
    for (const raw of bodies) expect((await server.call(exchange, "a", 0, { raw })).status).toBe(400);
    const deep = `{"tool_name":"add","input":${"[".repeat(400_000)}${"]".repeat(400_000)}}`;
    expect((await server.call(exchange, "a", 0, { raw: deep })).status).toBe(400);
    const large = await server.call(exchange, "a", "x".repeat(2 ** 20));
    expect([large.status, large.body.error]).toEqual([413, "request_too_large"]);
    expect(await idsOf(exchange)).toEqual([]);
  });

  it("cannot make more calls, or larger ones together, than an exchange holds", async () => {
    const exchange = await server.open();
    const ids = callIds(200);
    const answers = ids.map((id) => server.call(exchange, id));
    expect(await idsOf(exchange, ids, 10_000)).toEqual(ids);
    expect((await server.call(exchange, "call_201")).status).toBe(400);
    await server.close(exchange);
    for (const answer of answers) expect((await answer).status).toBe(404);

    const other = await server.open();
    const mega = "x".repeat(2 ** 20 - 100);
    const large = callIds(21).map((id) => server.call(other, id, mega));
    expect((await Promise.race(large)).body.error).toBe("tool_call_too_large");
    expect(await idsOf(other)).toHaveLength(20);
    await server.close(other);
    await Promise.all(large);
  });

  it("cannot hold more than a few connections for one call", async () => {
    const exchange = await server.open();
    const statuses: number[] = [];
    const calls = Array.from({ length: 40 }, async () => {
      statuses.push((await server.call(exchange, "a")).status);
    });
    // The result comes when those that are too many were refused: it answers one that comes after it.
    await expect.poll(() => statuses.length).toBe(24);
    await server.results(exchange, [{ call_id: "a", result: 1 }]);
    await Promise.all(calls);
    expect(statuses).toEqual([...Array(24).fill(503), ...Array(16).fill(200)]);
  });

  it("without the internal token gets nowhere", async () => {
    const exchange = await server.open();
    const routes = [
      ["POST", "/sessions"],
      ["DELETE", `/sessions/${exchange.execution}`],
      ["GET", `/sessions/${exchange.execution}/pending`],
      ["POST", `/sessions/${exchange.execution}/results`],
      ["POST", "/tool-call"],
      ["POST", "/tool-calls"],
    ] as const;
    for (const [method, path] of routes) {
      for (const headers of [{}, { "x-svc-internal-token": "wrong" }]) {
        const answer = await fetch(server.url + path, { method, headers });
        expect([path, answer.status]).toEqual([path, 401]);
      }
    }
  });
});
