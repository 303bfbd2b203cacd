import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "@svc/contracts";
import { StoredBytes, storedKeys } from "@svc/service-kit";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Idempotency } from "../../src/exec/idempotency.ts";
import { never, startJobs, type TestJobs } from "../support/consumer.ts";

const ME = { tenantId: "t", userId: "u" };
const BODY = { code: "print(1)", lang: "py" };
let made: TestJobs;
let runs = 0;

beforeAll(async () => {
  made = await startJobs();
});
afterAll(() => made.stop());
beforeEach(async () => {
  runs = 0;
  await made.redis.flushall();
});

const answering =
  (answer: unknown, ms = 0) =>
  async () => {
    runs++;
    await sleep(ms);
    return answer;
  };
const once = (
  run: () => Promise<unknown>,
  { who = ME, key = "key", body = BODY as unknown, left = never() } = {},
) => made.idempotency.once(who, key, body, left, run);

describe("the same key and body", () => {
  it("give the stored answer and run once", async () => {
    expect(await once(answering({ a: 1 }))).toEqual({ answer: { a: 1 }, replayed: false });
    expect(await once(answering({ a: 2 }))).toEqual({ answer: { a: 1 }, replayed: true });
    expect(runs).toBe(1);
  });

  it("in twenty requests at once run once, and all have its answer", async () => {
    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, at) => once(answering({ at }, 300))));
    expect(runs).toBe(1);
    expect(outcomes.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(new Set(outcomes.map(({ answer }) => JSON.stringify(answer))).size).toBe(1);
  });

  it("may have their fields in another order", async () => {
    await once(answering(1));
    const body = { lang: "py", code: "print(1)" };
    expect(await once(answering(2), { body })).toEqual({ answer: 1, replayed: true });
  });

  it("are kept for ten minutes", async () => {
    await once(answering(1));
    const [key = ""] = await made.redis.keys("svc:idempotency:*");
    const ttl = await made.redis.pttl(key);
    expect(ttl).toBeGreaterThan(590_000);
    expect(ttl).toBeLessThanOrEqual(600_000);
  });
});

describe("what is stored", () => {
  const [IDS, SIZES] = storedKeys("t:user:u");
  const MOST = 10_000;
  const bounded = () => new Idempotency(made.redis, new StoredBytes(made.redis, MOST));
  const answerTo = (idempotency: Idempotency, key: string, bytes: number) =>
    idempotency.once(ME, key, BODY, never(), answering("x".repeat(bytes)));

  it("counts in the bytes of its principal, as long as it lives", async () => {
    await answerTo(bounded(), "a", 4000);
    const [entry = ""] = await made.redis.keys("svc:idempotency:*");
    expect(await made.redis.hgetall(SIZES)).toEqual({
      [entry]: String(await made.redis.strlen(entry)),
      total: String(await made.redis.strlen(entry)),
    });
    const [seconds, micros] = await made.redis.time();
    const left = Number(await made.redis.zscore(IDS, entry)) - Number(seconds) * 1000 - Number(micros) / 1000;
    expect(Math.abs(left - (await made.redis.pttl(entry)))).toBeLessThan(2000);
  });

  it("takes no further large answer where there is no room: that key is free, and runs again", async () => {
    const idempotency = bounded();
    for (const key of ["a", "b"]) await answerTo(idempotency, key, 4000);
    for (const round of [3, 4]) {
      expect(await answerTo(idempotency, "c", 4000)).toMatchObject({ replayed: false });
      expect(runs).toBe(round);
      expect(await made.redis.keys("svc:idempotency:*")).toHaveLength(2);
    }
    expect(await made.redis.hget(SIZES, "total").then(Number)).toBeLessThanOrEqual(MOST);
    expect(await answerTo(idempotency, "a", 4000)).toMatchObject({ replayed: true });
  });

  it("takes small answers all the same", async () => {
    const idempotency = bounded();
    for (const key of ["a", "b"]) await answerTo(idempotency, key, 4800);
    expect(await answerTo(idempotency, "c", 500)).toMatchObject({ replayed: false });
    expect(await answerTo(idempotency, "c", 500)).toMatchObject({ replayed: true });
  });
});

describe("what makes another request", () => {
  it("another key or another principal runs for itself", async () => {
    await once(answering(1));
    expect((await once(answering(2), { key: "other" })).answer).toBe(2);
    expect((await once(answering(3), { who: { ...ME, userId: "v" } })).answer).toBe(3);
    expect((await once(answering(4), { who: { ...ME, tenantId: "s" } })).answer).toBe(4);
    expect(runs).toBe(4);
  });

  it("no key and principal can be put together to be another's", async () => {
    await once(answering(1), { who: { tenantId: "t", userId: "u" }, key: "a b" });
    await once(answering(2), { who: { tenantId: "t", userId: "u a" }, key: "b" });
    await once(answering(3), { who: { tenantId: "t:user:u", userId: "a" }, key: "b" });
    expect(runs).toBe(3);
  });

  it("another body under the same key is refused, while the first runs and after it", async () => {
    const body = { ...BODY, code: "print(2)" };
    const first = once(answering(1, 200));
    await sleep(50);
    await expect(once(answering(2), { body })).rejects.toMatchObject({
      code: "idempotency_key_reused",
      status: 422,
    });
    await first;
    await expect(once(answering(2), { body })).rejects.toMatchObject({ code: "idempotency_key_reused" });
    expect(runs).toBe(1);
  });
});

describe("failures", () => {
  const failing = async () => {
    runs++;
    await sleep(100);
    throw new ServiceError("queue_saturated");
  };

  it("are not stored: the next request runs", async () => {
    await expect(once(failing)).rejects.toMatchObject({ code: "queue_saturated" });
    expect(await once(answering(2))).toEqual({ answer: 2, replayed: false });
  });

  it("let one of those who wait run in their turn", async () => {
    const first = once(failing).catch((error: unknown) => error);
    await sleep(20);
    const others = await Promise.all([once(answering(2, 50)), once(answering(2, 50))]);
    expect(await first).toMatchObject({ code: "queue_saturated" });
    expect(runs).toBe(2);
    expect(others.map(({ replayed }) => replayed).sort()).toEqual([false, true]);
  });

  it("of the store let nothing through", async () => {
    const other = await startJobs();
    await other.server.kill();
    const refused = other.idempotency.once(ME, "key", BODY, never(), answering(1));
    await expect(refused).rejects.toMatchObject({ code: "store_unavailable" });
    expect(runs).toBe(0);
    await other.stop();
  });

  it("to store the answer do not take it away", async () => {
    const other = await startJobs();
    const run = async () => {
      await other.server.kill();
      return "done";
    };
    expect(await other.idempotency.once(ME, "key", BODY, never(), run)).toEqual({
      answer: "done",
      replayed: false,
    });
    await other.stop();
  });
});

describe("an entry that lapsed while its request runs, as while the store was away", () => {
  const entryKey = async () => (await made.redis.keys("svc:idempotency:*"))[0] ?? "";

  it("is made again by its renewal: a further request waits", async () => {
    let further: ReturnType<typeof once> | undefined;
    const first = await once(async () => {
      const key = await entryKey();
      await made.redis.del(key);
      await expect.poll(() => made.redis.pttl(key)).toBeGreaterThan(10_000);
      further = once(answering(2));
      await expect.poll(() => made.redis.exists(`${key}:waiter`)).toBe(1);
      return 1;
    });
    expect([first, await further]).toEqual([
      { answer: 1, replayed: false },
      { answer: 1, replayed: true },
    ]);
    expect(runs).toBe(0);
  });

  it("keeps the answer", async () => {
    await once(async () => {
      await made.redis.del(await entryKey());
      return 1;
    });
    expect(await once(answering(2))).toEqual({ answer: 1, replayed: true });
  });

  it("gives a request that fails the answer of the one that claimed it, and to the same body alone", async () => {
    const failing = async (change: object) => {
      const key = await entryKey();
      const entry = JSON.parse((await made.redis.get(key)) ?? "");
      await made.redis.set(key, JSON.stringify({ ...entry, owner: "another", answer: 7, ...change }));
      throw new ServiceError("queue_saturated");
    };
    expect(await once(() => failing({}))).toEqual({ answer: 7, replayed: true });
    await made.redis.flushall();
    await expect(once(() => failing({ body: "another" }))).rejects.toMatchObject({ code: "queue_saturated" });
  });
});

describe("who waits and who left", () => {
  it("a waiter that leaves ends at once and the first goes on", async () => {
    const end = Promise.withResolvers<void>();
    const first = once(async () => {
      await end.promise;
      return answering(1)();
    });
    await sleep(50);
    const controller = new AbortController();
    const waiter = once(answering(2), { left: controller.signal });
    await sleep(50);
    controller.abort(new ServiceError("execution_cancelled"));
    await expect(waiter).rejects.toMatchObject({ code: "execution_cancelled" });
    end.resolve();
    expect(await first).toEqual({ answer: 1, replayed: false });
    expect(runs).toBe(1);
  });

  it("the first knows whether another still waits", async () => {
    const seen: boolean[] = [];
    const first = made.idempotency.once(ME, "key", BODY, never(), async (hasWaiters) => {
      seen.push(await hasWaiters());
      await expect.poll(hasWaiters).toBe(true);
      seen.push(await hasWaiters());
      return 1;
    });
    await expect.poll(() => seen).toEqual([false]);
    await Promise.all([first, once(answering(2))]);
    expect(seen).toEqual([false, true]);
  });

  it("an owner that lost its entry neither renews, replaces nor removes another's", async () => {
    const lose = async () => {
      const [key = ""] = await made.redis.keys("svc:idempotency:*");
      await made.redis.set(key, '{"body":"another owner"}', "PX", 60_000);
      return key;
    };
    let key = "";
    const first = await once(async () => {
      key = await lose();
      return 1;
    });
    expect(first).toEqual({ answer: 1, replayed: false });
    expect(await made.redis.get(key)).toBe('{"body":"another owner"}');
    await made.redis.flushall();
    const failed = once(async () => {
      key = await lose();
      throw new ServiceError("queue_saturated");
    });
    await expect(failed).rejects.toMatchObject({ code: "queue_saturated" });
    expect(await made.redis.get(key)).toBe('{"body":"another owner"}');
  });
});
