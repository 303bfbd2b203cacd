import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CALLBACK_TOKEN_HEADER,
  EXECUTION_ID_HEADER,
  INTERNAL_TOKEN_HEADER,
  TOOL_CALL_ID_HEADER,
} from "@svc/contracts";
import { beginPost, refusesConnections } from "@svc/test-kit/components/begun-request";
import {
  callIds,
  INTERNAL_TOKEN,
  startServer,
  startServers,
  type ToolCallServer,
} from "@svc/test-kit/components/tool-call-server";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

let started: Awaited<ReturnType<typeof startServers>>;
let store: Redis;
const servers = () => started.servers as [ToolCallServer, ToolCallServer];
async function begin(): Promise<void> {
  started = await startServers(2);
  store = new Redis(started.redis.socket).on("error", () => {});
}
async function end(): Promise<void> {
  store.disconnect();
  await started.stop();
}

describe("two servers on one store", () => {
  beforeAll(() => begin());
  afterAll(() => end());

  it("serve any request of one execution", async () => {
    const [left, right] = servers();
    const exchange = await left.open();
    const listed = left.pending(exchange, ["a", "b"], 10_000);
    const answers = [left.call(exchange, "a"), right.call(exchange, "b"), right.call(exchange, "a")];
    expect((await listed).pending_calls.map(({ call_id }) => call_id)).toEqual(["a", "b"]);
    await right.results(exchange, [{ call_id: "a", result: 1 }]);
    await left.results(exchange, [{ call_id: "b", result: 2 }]);
    expect((await Promise.all(answers)).map(({ body }) => body.result)).toEqual([1, 2, 1]);
  });

  it("lose nothing when one is killed: calls are repeated at the other, and later at the restarted one", async () => {
    const [left, right] = servers();
    const exchange = await left.open();
    const ids = callIds(20);
    const lost = ids.map((id) => left.call(exchange, id, { id }).catch((error: Error) => error.name));
    await right.pending(exchange, ids, 10_000);
    await left.kill();
    expect(await Promise.all(lost)).toEqual(ids.map(() => "ServiceError"));
    const repeated = ids.map((id) => right.call(exchange, id, { id }));
    await left.restart();
    await left.results(
      exchange,
      ids.map((id) => ({ call_id: id, result: id })),
    );
    expect((await Promise.all(repeated)).map(({ body }) => body.result)).toEqual(ids);
    expect((await left.call(exchange, "call_007", { id: "call_007" })).body.result).toBe("call_007");
  });

  it("go on waiting while the store is killed and comes back", async () => {
    const [left, right] = servers();
    const exchange = await left.open();
    const answer = left.call(exchange, "a", { x: 1 });
    await right.pending(exchange, ["a"], 5000);
    // What was confirmed is on disk: how much a crash may lose is a setting of the store.
    await store.config("SET", "appendfsync", "always");
    await started.redis.kill();
    const refused = await right.results(exchange, [{ call_id: "a", result: 1 }]).catch(() => undefined);
    expect(refused?.status ?? 503).toBe(503);
    await started.redis.start();
    await expect
      .poll(async () => (await right.results(exchange, [{ call_id: "a", result: 1 }])).status, {
        timeout: 20_000,
      })
      .toBe(200);
    expect((await answer).body.result).toBe(1);
  });

  it("record a call again that a crashed store has forgotten, and not one whose exchange has ended", async () => {
    const [left, right] = servers();
    const exchange = await left.open();
    const answer = left.call(exchange, "a", { x: 1 });
    await right.pending(exchange, ["a"], 5000);
    await store
      .multi()
      .del(`svc:tool:${exchange.execution}:calls`)
      .hset(`svc:tool:${exchange.execution}:session`, "rev", 0)
      .exec();
    expect((await right.pending(exchange, ["a"], 10_000)).pending_calls[0]?.tool_input).toEqual({ x: 1 });
    await right.results(exchange, [{ call_id: "a", result: 1 }]);
    expect((await answer).body.result).toBe(1);
    const late = left.call(exchange, "c");
    await right.pending(exchange, ["c"], 5000);
    await store.hdel(`svc:tool:${exchange.execution}:calls`, "c");
    await right.results(exchange, [{ call_id: "c", result: 3 }]);
    expect((await late).body.result).toBe(3);
    const ended = left.call(exchange, "b");
    await right.pending(exchange, ["b"], 5000);
    await store.del(["calls", "session"].map((part) => `svc:tool:${exchange.execution}:${part}`));
    expect((await ended).body.error).toBe("execution_not_found");
  });

  it("hear of results although the message was lost", async () => {
    const [left] = servers();
    const exchange = await left.open();
    const answers = ["a", "b"].map((id) => left.call(exchange, id));
    await left.pending(exchange, ["a", "b"], 5000);
    // Results that nobody is told of: what a broken subscription looks like from inside.
    const text = '{"success":true,"result":"quiet","is_error":false}';
    const key = `svc:tool:${exchange.execution}`;
    for (const [index, id] of ["a", "b"].entries()) {
      const began = performance.now();
      await store.multi().hset(`${key}:results`, id, text).hincrby(`${key}:session`, "rev", 1).exec();
      expect((await answers[index])?.body.result).toBe("quiet");
      expect(performance.now() - began).toBeLessThan(10_000);
    }
  });

  it("read an exchange again only when it has changed, although the message was lost", async () => {
    const [left] = servers();
    const exchange = await left.open();
    const key = `svc:tool:${exchange.execution}`;
    const runs = async () =>
      Number(/^cmdstat_zremrangebyscore:calls=(\d+)/m.exec(await store.info("commandstats"))?.[1]);
    const before = await runs();
    const listing = left.pending(exchange, ["a"], 30_000);
    await sleep(3500);
    expect(await runs()).toBe(before + 1);
    await store
      .multi()
      .hset(`${key}:calls`, "a", '1 "tool_name":"add","tool_input":{}')
      .hincrby(`${key}:session`, "rev", 1)
      .exec();
    const began = performance.now();
    expect((await listing).pending_calls.map(({ call_id }) => call_id)).toEqual(["a"]);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it("hear of results given while their subscription was cut", async () => {
    const [left, right] = servers();
    const exchange = await left.open();
    const answer = left.call(exchange, "a");
    await left.pending(exchange, ["a"], 5000);
    const subscriptions = async () =>
      `${await store.call("CLIENT", "LIST", "TYPE", "pubsub")}`.match(/^id=/gm);
    await expect.poll(subscriptions).toHaveLength(2);
    expect(await store.call("CLIENT", "KILL", "TYPE", "pubsub")).toBe(2);
    await right.results(exchange, [{ call_id: "a", result: 1 }]);
    expect((await answer).body.result).toBe(1);
  });

  it("survive callers that send half a request", async () => {
    const [left] = servers();
    const { hostname, port } = new URL(left.url);
    const sockets = Array.from({ length: 50 }, () => connect(Number(port), hostname));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    for (const socket of sockets)
      socket.write("POST /tool-call HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{");
    const exchange = await left.open();
    const answer = left.call(exchange, "a");
    await left.pending(exchange, ["a"], 5000);
    await left.results(exchange, [{ call_id: "a", result: 1 }]);
    expect((await answer).status).toBe(200);
    for (const socket of sockets) socket.destroy();
  });
});

describe("two servers on a store of their own", () => {
  beforeEach(() => begin());
  afterEach(() => end());

  it("stop in order: who waits is told to come again, and can", async () => {
    const [left, right] = servers();
    const exchange = await left.open();
    const answer = left.call(exchange, "a");
    const listing = left.send("GET", `/sessions/${exchange.execution}/pending?wait_ms=60000&call_ids=z`);
    await right.pending(exchange, ["a"], 5000);
    await left.kill("SIGTERM");
    for (const { status, body } of [await answer, await listing]) {
      expect([status, body.error]).toEqual([503, "shutting_down"]);
    }
    const again = right.call(exchange, "a");
    await right.results(exchange, [{ call_id: "a", result: 1 }]);
    expect((await again).body.result).toBe(1);
  });

  it("stop at once, also when a further call comes on an open connection, and keep that call", async () => {
    const [left, right] = servers();
    const { execution, token } = await left.open();
    const late = await beginPost(`${left.url}/tool-call`, {
      [INTERNAL_TOKEN_HEADER]: INTERNAL_TOKEN,
      [EXECUTION_ID_HEADER]: execution,
      [CALLBACK_TOKEN_HEADER]: token,
      [TOOL_CALL_ID_HEADER]: "a",
    });
    const stopped = left.kill("SIGTERM");
    await expect.poll(() => refusesConnections(left.url)).toBe(true);
    expect(await late.finish({ tool_name: "add", input: {} })).toBe("503 shutting_down");
    await stopped;
    expect((await right.pending({ execution, token })).pending_calls).toHaveLength(1);
  });

  it("count the same exchanges at each scrape", async () => {
    const [left, right] = servers();
    const exchanges = await Promise.all([left.open(), right.open(), left.open()]);
    const counts = () =>
      Promise.all(servers().map((server) => server.metric("svc_tool_call_active_sessions")));
    expect(await counts()).toEqual([3, 3]);
    await right.close(exchanges[0]);
    await right.close(exchanges[0]);
    expect(await counts()).toEqual([2, 2]);
  });

  it("let a wait go when its client goes, and keep the call", async () => {
    const [left, right] = servers();
    const exchange = await left.open();
    const before = socketsOf(left.pid);
    const leaving = new AbortController();
    const ids = callIds(50);
    const gone = ids.map((id) => left.call(exchange, id, {}, { signal: leaving.signal }).catch(() => "gone"));
    await right.pending(exchange, ids, 5000);
    expect(socketsOf(left.pid)).toBeGreaterThanOrEqual(before + 49);
    leaving.abort();
    expect(new Set(await Promise.all(gone))).toEqual(new Set(["gone"]));
    await expect.poll(() => socketsOf(left.pid)).toBeLessThanOrEqual(before + 1);
    expect((await right.pending(exchange)).pending_calls).toHaveLength(50);
    const again = left.call(exchange, "call_001");
    await left.results(exchange, [{ call_id: "call_001", result: 1 }]);
    expect((await again).body.result).toBe(1);
  });
});

/** By the settings that are not set here. */
const LONGEST_ROUND_MS = 300_000;

describe("times", () => {
  let started: Awaited<ReturnType<typeof startServers>>;
  let server: ToolCallServer;

  beforeAll(async () => {
    started = await startServers(0);
    const env = { TOOL_CALL_REQUEST_TIMEOUT: "1000", TOOL_CALL_SESSION_EXPIRY: "2" };
    server = await startServer(started.redis.url, env);
  });
  afterAll(async () => {
    await server.stop();
    await started.stop();
  });

  it("a call without a result ends with tool_call_timeout, is counted, and can be asked for again", async () => {
    const exchange = await server.open();
    const began = performance.now();
    const answer = await server.call(exchange, "a");
    expect([answer.status, answer.body.error]).toEqual([408, "tool_call_timeout"]);
    expect(performance.now() - began).toBeGreaterThan(990);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(await server.metric("svc_tool_call_timeouts_total")).toBe(1);
    await server.results(exchange, [{ call_id: "a", result: 1 }]);
    expect((await server.call(exchange, "a")).body.result).toBe(1);
  });

  it("an exchange may have a shorter time for its calls, and each pause begins it anew", async () => {
    const exchange = await server.open({ timeout: 1200 });
    const [a, b] = [server.call(exchange, "a"), server.call(exchange, "b")];
    const began = performance.now();
    await server.pending(exchange, ["a", "b"], 500);
    while (performance.now() - began < 700) await server.pending(exchange, ["never"], 100);
    await server.results(exchange, [{ call_id: "a", result: 1 }]);
    expect((await a).status).toBe(200);
    expect((await b).status).toBe(408);
    expect(performance.now() - began).toBeGreaterThan(1500);
  });

  it("an exchange whose program runs without a pause lives as long as the program may run", async () => {
    const store = new Redis(started.redis.socket).on("error", () => {});
    const lives = async ({ execution }: { execution: string }) =>
      Promise.all(["session", "calls", "results"].map((part) => store.pttl(`svc:tool:${execution}:${part}`)));
    const exchange = await server.open();
    expect(Math.max(...(await lives(exchange)))).toBeGreaterThan(LONGEST_ROUND_MS);
    await server.call(exchange, "a");
    expect((await server.pending(exchange)).status).toBe("active");
    expect(Math.max(...(await lives(exchange)))).toBeLessThanOrEqual(2000);
    await server.results(exchange, [{ call_id: "a", result: 1 }]);
    expect(Math.min(...(await lives(exchange)))).toBeGreaterThan(LONGEST_ROUND_MS);
    expect(await store.pttl("svc:tool:sessions")).toBeGreaterThan(LONGEST_ROUND_MS);
    store.disconnect();
  });

  it("an exchange expires as a whole, unless it is paused anew, and is no longer counted", async () => {
    const store = new Redis(started.redis.socket).on("error", () => {});
    await store.flushall();
    const [kept, left] = [await server.open(), await server.open()];
    await Promise.all([kept, left].map((exchange) => server.call(exchange, "a")));
    await server.results(left, [{ call_id: "a", result: 1 }]);
    await server.pending(left);
    expect(await server.metric("svc_tool_call_active_sessions")).toBe(2);
    const gone = async () => (await store.keys(`svc:tool:${left.execution}:*`)).length === 0;
    await expect
      .poll(async () => [(await server.pending(kept)).status, await gone()])
      .toEqual(["active", true]);
    expect(await server.metric("svc_tool_call_active_sessions")).toBe(1);
    expect((await server.call(left, "a")).status).toBe(401);
    await expect.poll(() => server.metric("svc_tool_call_active_sessions")).toBe(0);
    expect(await store.keys("svc:tool:*")).toEqual([]);
    store.disconnect();
  });

  it("exchanges that nobody closes leave the index, also where nobody reads the metrics", async () => {
    const store = new Redis(started.redis.socket).on("error", () => {});
    await store.flushall();
    const opened = await Promise.all(Array.from({ length: 20 }, () => server.open()));
    await Promise.all(opened.map((exchange) => server.pending(exchange)));
    expect(await store.zcard("svc:tool:sessions")).toBe(20);
    await expect.poll(() => store.keys("svc:tool:*:session")).toEqual([]);
    const last = await server.open();
    expect(await store.zrange("svc:tool:sessions", "0", "-1")).toEqual([last.execution]);
    await server.pending(last);
    await expect.poll(() => store.keys("svc:tool:*")).toEqual([]);
    store.disconnect();
  });
});

/** How many sockets a process has open. */
const socketsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
