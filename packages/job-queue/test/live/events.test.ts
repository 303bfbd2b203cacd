/** What running jobs write, from the worker to its readers, over a real Redis that fails now and then. */
import type { PlacedEvent, RunEvent } from "@svc/contracts";
import { newId } from "@svc/contracts";
import { EventFeed, EventLog, KeptJobs } from "@svc/job-queue";
import { createLog, createRedis, loadConfig, type Redis } from "@svc/service-kit";
import { OK } from "@svc/test-kit/components/job-queue";
import { jobOf } from "@svc/test-kit/components/messages";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventsKey, merged } from "../../src/events.ts";

const SESSION = newId();
const STARTED: RunEvent = { event: "started", language: "python", version: "3" };
const BEGAN: PlacedEvent = { ...STARTED, session_id: SESSION };
const out = (text: string): RunEvent => ({ event: "stdout", text });
const never = () => new AbortController().signal;

let server: PrivateRedis;
let redis: Redis;
let subscriber: Redis;
let feed: EventFeed;
const warned: unknown[] = [];
const config = () =>
  loadConfig("api", {
    LOCAL_MODE: "true",
    LOG_LEVEL: "fatal",
    SVC_INTERNAL_SERVICE_TOKEN: newSecret(),
    REDIS_URL: server.url,
  });
const log = () => Object.assign(createLog("api", config()), { warn: (line: unknown) => warned.push(line) });

beforeAll(async () => {
  server = await startRedis();
  redis = createRedis(config(), log(), { use: "commands" });
  subscriber = createRedis(config(), log(), { use: "blocking" });
  feed = new EventFeed(redis);
  feed.listen(subscriber);
});
afterAll(async () => {
  redis.disconnect();
  subscriber.disconnect();
  await server.stop();
});

/** All that a reader is given until the job is over; `on` is called at each batch. */
async function readAll(id: string, over: AbortSignal, on?: (events: PlacedEvent[]) => void) {
  const read: PlacedEvent[] = [];
  for await (const events of feed.read(id, over)) {
    read.push(...events);
    on?.(events);
  }
  return merged(read);
}

const channels = async () => (await redis.pubsub("CHANNELS", "svc:events:*")) as string[];

describe("the events of a job", () => {
  it("are read as they come and afterwards, by several", async () => {
    const [id, over] = [newId(), new AbortController()];
    const events = new EventLog(redis, log(), id, never());
    const seen = Promise.withResolvers<void>();
    const early = [1, 2, 3].map(() => readAll(id, over.signal, () => seen.resolve()));
    events.add(STARTED, SESSION);
    await seen.promise;
    for (const text of ["a", "é🎉", "b"]) events.add(out(text), SESSION);
    await events.end();
    over.abort();
    const all = [BEGAN, { event: "stdout", text: "aé🎉b", at: 0 }];
    expect(await Promise.all(early)).toEqual([all, all, all]);
    expect(await readAll(id, AbortSignal.abort())).toEqual(all);
    feed.forget(id);
    await expect.poll(() => redis.exists(eventsKey(id))).toBe(0);
    await expect.poll(channels).toEqual([]);
  });

  it("are thousands, of both outputs by turns, in order", async () => {
    const id = newId();
    const events = new EventLog(redis, log(), id, never());
    events.add(STARTED, SESSION);
    for (let at = 0; at < 3000; at++)
      events.add({ event: at % 2 ? "stderr" : "stdout", text: `${at}\n` }, SESSION);
    await events.end();
    const read = await readAll(id, AbortSignal.abort());
    const numbers = read.flatMap((event) => ("text" in event ? event.text.split("\n").filter(Boolean) : []));
    expect(numbers).toEqual(Array.from({ length: 3000 }, (_, at) => String(at)));
  });

  it("are found although nothing announces them", async () => {
    const [id, over] = [newId(), new AbortController()];
    const deaf = new EventFeed(redis);
    const first = Promise.withResolvers<PlacedEvent[]>();
    const reading = (async () => {
      for await (const events of deaf.read(id, over.signal)) first.resolve(events);
    })();
    const events = new EventLog(redis, log(), id, never());
    events.add(STARTED, SESSION);
    expect(await first.promise).toEqual([BEGAN]);
    over.abort();
    await reading;
  });

  it("begin anew with a further start, and tell their places from there", async () => {
    const id = newId();
    for (const text of ["first", "second"]) {
      const events = new EventLog(redis, log(), id, never());
      events.add(STARTED, SESSION);
      events.add(out(text), SESSION);
      await events.end();
    }
    expect(await readAll(id, AbortSignal.abort())).toEqual([
      BEGAN,
      { event: "stdout", text: "second", at: 0 },
    ]);
  });

  it("do not come back once they are forgotten, and a cancelled job adds none", async () => {
    const [id, cancelled] = [newId(), new AbortController()];
    const events = new EventLog(redis, log(), id, cancelled.signal);
    events.add(STARTED, SESSION);
    await expect.poll(() => redis.exists(eventsKey(id))).toBe(1);
    await redis.unlink(eventsKey(id));
    events.add(out("more"), SESSION);
    await events.end();
    expect(await redis.exists(eventsKey(id))).toBe(0);
    cancelled.abort();
    events.add(STARTED, SESSION);
    await events.end();
    expect(await redis.exists(eventsKey(id))).toBe(0);
  });

  it("expire when nobody forgets them", async () => {
    const id = newId();
    const events = new EventLog(redis, log(), id, never());
    events.add(STARTED, SESSION);
    await events.end();
    expect(await redis.pttl(eventsKey(id))).toBeGreaterThan(600_000);
  });

  it("are written again after a failure of the store, and lose nothing", async () => {
    const [id, over] = [newId(), new AbortController()];
    const reading = readAll(id, over.signal);
    const events = new EventLog(redis, log(), id, never());
    events.add(STARTED, SESSION);
    await expect.poll(() => redis.exists(eventsKey(id))).toBe(1);
    const before = warned.length;
    await redis.config("SET", "maxmemory", "1");
    events.add(out("kept"), SESSION);
    await expect.poll(() => warned.length).toBe(before + 1);
    events.add(out(" and more"), SESSION);
    await redis.config("SET", "maxmemory", "0");
    await expect.poll(() => redis.xlen(eventsKey(id))).toBeGreaterThan(1);
    await events.end();
    over.abort();
    expect(await reading).toEqual([BEGAN, { event: "stdout", text: "kept and more", at: 0 }]);
  });
});

describe("a wait for the end of a job", () => {
  it("hears of nothing else that the job does", async () => {
    const id = newId();
    const { news, leave } = feed.watchEnd(id);
    const heard: string[] = [];
    subscriber.on("message", (channel: string, message: string) => {
      if (channel === eventsKey(id)) heard.push(message);
    });
    // Its subscription: the job may have ended before.
    expect(await news.wait({ ms: 10_000 })).toBe(true);
    const events = new EventLog(redis, log(), id, never());
    events.add(STARTED, SESSION);
    await events.end();
    await expect.poll(() => heard).toEqual([""]);
    expect(await news.wait({ ms: 0 })).toBe(false);
    const [kept, job] = [new KeptJobs(redis), jobOf({ execution_id: id })];
    await kept.create(job, { jobs: 0, bytes: 0 });
    await kept.end({ id, namespace: job.output_namespace }, OK, 60_000);
    expect(await news.wait({ ms: 10_000 })).toBe(true);
    expect(heard).toHaveLength(2);
    leave();
    await expect.poll(channels).toEqual([]);
  });
});

describe("readers that leave", () => {
  it("leave no subscription behind, a thousand of them", async () => {
    const ids = Array.from({ length: 50 }, () => newId());
    const overs = ids.flatMap((id) =>
      Array.from({ length: 20 }, () => ({ id, over: new AbortController() })),
    );
    const reading = overs.map(({ id, over }) => readAll(id, over.signal));
    await expect.poll(async () => (await channels()).length).toBe(ids.length);
    for (const { over } of overs) over.abort();
    await Promise.all(reading);
    await expect.poll(channels).toEqual([]);
    expect(await redis.keys("svc:events:*")).not.toContain(eventsKey(ids[0] ?? ""));
  });
});
