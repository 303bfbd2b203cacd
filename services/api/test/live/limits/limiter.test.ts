import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { callerKey, type Entry, Limiter } from "@svc/api/limits/limiter";
import { SEAT_LIFE_MS } from "@svc/api/limits/seats";
import { newId, type Principal } from "@svc/contracts";
import { createLog, createRedis, loadConfig, type Redis } from "@svc/service-kit";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

const CLIENTS = 64;
let me: Principal;
let server: PrivateRedis;
const redises: Redis[] = [];
const limiters: Limiter[] = [];

/** A limiter with a connection of its own, as each replica has one. */
function limiter(env: Record<string, string> = {}): Limiter {
  const config = loadConfig("api", {
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    REDIS_URL: server.url,
    ...env,
  });
  const redis = createRedis(config, createLog("api", config), { use: "commands" });
  redises.push(redis);
  const made = new Limiter(config, redis);
  limiters.push(made);
  return made;
}
const redis = () => redises[0] as Redis;
const passed = (entries: readonly Entry[]) => entries.filter(({ refusal }) => refusal === undefined).length;
const times = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at));

beforeAll(async () => {
  server = await startRedis();
  limiter();
});
beforeEach(async () => {
  me = { tenantId: "t", userId: newId() };
  await redis().flushall();
});
afterEach(() => {
  for (const made of limiters.splice(0)) made.close();
});
afterAll(async () => {
  for (const connection of redises) connection.disconnect();
  await server.stop();
});

describe("a window", () => {
  it("lets exactly the allowed number pass, however many replicas and clients race for it", async () => {
    const replicas = [limiter({ UPLOAD_MAX_REQUESTS: "37" }), limiter({ UPLOAD_MAX_REQUESTS: "37" })];
    const entries = await Promise.all(
      times(CLIENTS * 4, (at) => (replicas[at % 2] as Limiter).enter("uploads", me)),
    );
    expect(passed(entries)).toBe(37);
    const counts = entries.map(({ window }) => window.count).sort((left, right) => left - right);
    expect(counts).toEqual(times(CLIENTS * 4, (at) => at + 1));
  });

  it("begins with its first request, keeps its end, and the next one is whole again", async () => {
    const made = limiter({ DOWNLOAD_MAX_REQUESTS: "2", DOWNLOAD_LIMIT_WINDOW: "3000" });
    const first = await made.enter("downloads", me);
    expect(first.window).toEqual({ requests: 2, windowMs: 3000, count: 1, leftMs: 3000 });
    await sleep(300);
    const second = await made.enter("downloads", me);
    expect(second.window.count).toBe(2);
    expect(second.window.leftMs).toBeLessThanOrEqual(2700);
    const third = await made.enter("downloads", me);
    expect(third.refusal?.by).toBe("downloads");
    // A refused request neither begins a window nor makes one longer.
    await sleep(third.window.leftMs + 5);
    expect((await made.enter("downloads", me)).window).toEqual(first.window);
  });

  it("is over when its Retry-After has passed", async () => {
    const made = limiter({ MAX_REQUESTS: "1", RATE_LIMIT_WINDOW: "900" });
    await made.enter("executions", me);
    const { refusal } = await made.enter("executions", me);
    expect(refusal?.headers).toEqual({ "retry-after": "1" });
    await sleep(1000);
    expect((await made.enter("executions", me)).refusal).toBeUndefined();
  });

  it("that was longer before the settings changed ends at the new length", async () => {
    const before = limiter({ FETCH_LIMIT_WINDOW: "60000" });
    const after = limiter({ FETCH_LIMIT_WINDOW: "1000" });
    await before.enter("fetches", me);
    expect((await after.enter("fetches", me)).window).toMatchObject({ count: 2, leftMs: 1000 });
  });

  it("is each principal's and each scope's own", async () => {
    const made = limiter({ MAX_REQUESTS: "1", UPLOAD_MAX_REQUESTS: "1" });
    const others = [
      { tenantId: "t", userId: "u" },
      { tenantId: "t", userId: "v" },
      { tenantId: "s", userId: "u" },
      { tenantId: 't","u', userId: "" },
      { tenantId: "tu", userId: "" },
      { tenantId: "", userId: "tu" },
      { tenantId: "t:user:u", userId: "\ud800" },
    ];
    for (const principal of [me, ...others]) {
      expect((await made.enter("executions", principal)).window.count).toBe(1);
    }
    expect((await made.enter("uploads", me)).window.count).toBe(1);
    expect((await made.enter("executions", me)).refusal?.by).toBe("executions");
  });

  it("leaves nothing in the store when it is over, and no name of a caller while it lasts", async () => {
    const made = limiter({ UPLOAD_LIMIT_WINDOW: "200", RATE_LIMIT_WINDOW: "200" });
    await made.enter("uploads", { tenantId: "acme", userId: "alice" });
    const { seat } = await made.enter("executions", { tenantId: "acme", userId: "alice" });
    expect((await redis().keys("*")).join()).not.toMatch(/acme|alice/);
    seat?.release();
    await expect.poll(() => redis().keys("*")).toEqual([]);
  });
});

describe("seats", () => {
  const OPEN = { MAX_REQUESTS: "100000" };
  const capped = (most: number) => limiter({ ...OPEN, SVC_MAX_CONCURRENT_EXECUTIONS: String(most) });
  const enter = (made: Limiter, principal = me) => made.enter("executions", principal);

  it("are taken by exactly as many as there are, over replicas, and are good again when given back", async () => {
    const replicas = [capped(6), capped(6)];
    const race = () => Promise.all(times(CLIENTS, (at) => enter(replicas[at % 2] as Limiter)));
    for (let round = 0; round < 3; round++) {
      const entries = await race();
      expect(passed(entries)).toBe(6);
      expect(new Set(entries.map(({ refusal }) => refusal?.by))).toEqual(
        new Set([undefined, "concurrent_executions"]),
      );
      for (const { seat } of entries) seat?.release();
    }
  });

  it("are without limit where their number is 0, and 20 where none is set", async () => {
    const unlimited = await Promise.all(times(100, () => enter(capped(0))));
    expect(passed(unlimited)).toBe(100);
    expect(unlimited.every((entry) => !("seat" in entry))).toBe(true);
    const byDefault = await Promise.all(times(25, () => enter(limiter(OPEN))));
    expect(passed(byDefault)).toBe(20);
  });

  it("tell each its place among those that its caller holds", async () => {
    const made = capped(3);
    const [first, second] = [await enter(made), await enter(made)];
    expect([first.seat?.place, second.seat?.place]).toEqual([1, 2]);
    expect((await enter(made, { tenantId: "t", userId: "other" })).seat?.place).toBe(1);
    first.seat?.release();
    await expect.poll(() => redis().zcard(`svc:seats:${callerKey(me)}`)).toBe(1);
    expect((await enter(made)).seat?.place).toBe(2);
  });

  it("are each principal's own, and only executions need one", async () => {
    const made = capped(1);
    expect((await enter(made)).seat).toBeDefined();
    expect((await enter(made, { tenantId: "t", userId: "v" })).seat).toBeDefined();
    expect(await enter(made)).toMatchObject({ refusal: { by: "concurrent_executions" } });
    expect(await made.enter("uploads", me)).not.toHaveProperty("refusal");
  });

  it("are not taken by a request whose window is full", async () => {
    const made = limiter({
      MAX_REQUESTS: "1",
      RATE_LIMIT_WINDOW: "1500",
      SVC_MAX_CONCURRENT_EXECUTIONS: "1",
    });
    (await enter(made)).seat?.release();
    expect((await enter(made)).refusal?.by).toBe("executions");
    await sleep(1510);
    expect((await enter(made)).seat).toBeDefined();
  });

  it("count requests in the window that the store refused, and not those that the process refuses that holds all", async () => {
    const [holding, other] = [capped(1), capped(1)];
    const { seat } = await enter(holding);
    expect((await enter(other)).window.count).toBe(2);
    const refused = await enter(holding);
    expect(refused).toMatchObject({ refusal: { by: "concurrent_executions" }, window: { count: 1 } });
    expect(refused.window.leftMs).toBeGreaterThan(0);
    seat?.release();
    expect((await enter(holding)).window.count).toBe(3);
  });

  it("are all given to as many requests as there are, however they come together", async () => {
    const made = capped(8);
    await enter(made);
    for (let round = 0; round < 50; round++) {
      const entries = await Promise.all(times(7, () => enter(made)));
      expect(passed(entries)).toBe(7);
      for (const { seat } of entries) seat?.release();
    }
  });

  it("that one process holds are known to it without the store, until the window ends", async () => {
    const made = limiter({ ...OPEN, RATE_LIMIT_WINDOW: "1500", SVC_MAX_CONCURRENT_EXECUTIONS: "1" });
    await enter(made);
    await redis().del(`svc:seats:${callerKey(me)}`);
    const flood = await Promise.all(times(CLIENTS, () => enter(made)));
    expect(passed(flood)).toBe(0);
    await sleep(1510);
    expect((await enter(made)).window.count).toBe(1);
  });

  it("of a process that renews them outlive their life; without renewal they end", async () => {
    const [living, dead] = [capped(2), capped(2)];
    await enter(living);
    await enter(dead);
    dead.close();
    expect((await enter(living)).refusal?.by).toBe("concurrent_executions");
    await sleep(SEAT_LIFE_MS + 200);
    const freed = await enter(living);
    expect(freed.seat).toBeDefined();
    expect((await enter(living)).refusal?.by).toBe("concurrent_executions");
  });

  it("that the store lost are there again after the next renewal", async () => {
    const made = capped(1);
    const { seat } = await enter(made);
    await redis().flushall();
    await expect.poll(() => redis().keys("svc:seats:*")).toHaveLength(1);
    expect((await enter(made)).refusal?.by).toBe("concurrent_executions");
    seat?.release();
    expect((await enter(made)).seat).toBeDefined();
  });

  it("are taken once by a call that reaches the store twice", async () => {
    const lua = (name: string) =>
      readFile(new URL(`../../../src/limits/lua/${name}.lua`, import.meta.url), "utf8");
    const script = (await lua("seat")) + (await lua("enter"));
    const call = (id: string) => redis().eval(script, 2, "w", "s", 100, 1000, id, 1, 1000);
    const id = newId();
    expect(await call(id)).toEqual([1, 1000, 1]);
    expect(((await call(id)) as number[])[2]).toBe(1);
    expect(((await call(newId())) as number[])[2]).toBe(0);
  });
});

describe("a store that is away", () => {
  it("lets nothing through, and takes no seat for what it did not let through", async () => {
    const made = limiter({ SVC_MAX_CONCURRENT_EXECUTIONS: "1" });
    await made.enter("uploads", me);
    await server.kill();
    const away = { code: "store_unavailable", status: 503 };
    const calls = [made.enter("uploads", me), made.enter("executions", me), made.enter("executions", me)];
    for (const call of calls) await expect(call).rejects.toMatchObject(away);
    await server.start();
    expect((await made.enter("uploads", me)).refusal).toBeUndefined();
    await expect.poll(async () => (await made.enter("executions", me)).seat).toBeDefined();
  });
});
