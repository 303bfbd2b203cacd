import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "@svc/contracts";
import type { Log } from "@svc/service-kit";
import { expect, onTestFinished, test, vi } from "vitest";
import { type EndCause, Pool, type Pooled, type PoolOptions } from "../../src/guests/pool.ts";

const log = { error: () => undefined } as unknown as Log;
const { signal } = new AbortController();

/** A guest that is ready when it is told so, and gone at once when it is ended. */
class Guest implements Pooled {
  readonly #ready = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<string>();
  readonly ended = this.#ended.promise;
  isOver = false;
  isAtRest = false;

  pause = () => {
    this.isAtRest = true;
  };
  resume = () => {
    this.isAtRest = false;
  };
  ready = () => this.#ready.promise;
  getReady = () => this.#ready.resolve();
  fail = () => this.#ready.reject(new Error("it does not boot"));
  die = (reason = "killed") => {
    this.isOver = true;
    this.#ended.resolve(reason);
  };
  end = async () => this.die("ended");
}

function poolOf(options: Partial<PoolOptions<Guest>> & { areReady?: boolean } = {}) {
  const { areReady = true, ...rest } = options;
  const booted: Guest[] = [];
  const causes: EndCause[] = [];
  const pool = new Pool<Guest>({
    boot: async () => {
      const guest = new Guest();
      booted.push(guest);
      if (areReady) guest.getReady();
      return guest;
    },
    most: 4,
    ahead: 1,
    booting: 2,
    runsPerGuest: 1,
    maxAgeMs: 3_600_000,
    maxUnusedMs: 3_600_000,
    waitMs: 60_000,
    onReady: () => undefined,
    onEnd: (cause) => causes.push(cause),
    log,
    ...rest,
  });
  const living = () => booted.filter(({ isOver }) => !isOver).length;
  return { pool, booted, causes, living };
}

test("a run gets a guest that is ready, and another is booted at once", async () => {
  const { pool, booted } = poolOf();
  await pool.start();
  const lease = await pool.take("one", signal);
  expect(lease.guest).toBe(booted[0]);
  await expect.poll(() => pool.counts).toMatchObject({ busy: 1, ready: 1 });
});

test("a guest computes while it has a program that runs, and a while after its program is paused", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { pool, booted } = poolOf({ runsPerGuest: 2 });
  await pool.start();
  const [guest] = booted;
  expect(guest?.isAtRest).toBe(true);
  const lease = await pool.take("one", signal);
  expect(guest?.isAtRest).toBe(false);
  lease.pause();
  vi.advanceTimersByTime(9000);
  expect(guest?.isAtRest).toBe(false);
  vi.advanceTimersByTime(2000);
  expect(guest?.isAtRest).toBe(true);
  lease.goOn();
  expect(guest?.isAtRest).toBe(false);
  lease.pause();
  lease.goOn();
  vi.advanceTimersByTime(20_000);
  expect(guest?.isAtRest).toBe(false);
  lease.over();
  expect(guest?.isAtRest).toBe(true);
  await pool.take("one", signal);
  expect(guest?.isAtRest).toBe(false);
});

test("one that was waited for computes", async () => {
  const { pool, booted } = poolOf({ areReady: false });
  void pool.start();
  const taken = pool.take("one", signal);
  await expect.poll(() => booted.length).toBeGreaterThan(0);
  for (const guest of booted) guest.getReady();
  const { guest } = await taken;
  expect(guest.isAtRest).toBe(false);
});

test("a guest ends with its last run", async () => {
  const { pool, booted, causes } = poolOf();
  await pool.start();
  (await pool.take("one", signal)).over();
  expect(booted[0]?.isOver).toBe(true);
  expect(causes).toEqual(["served"]);
});

test("a guest with runs left serves its principal again, and no other", async () => {
  const { pool } = poolOf({ runsPerGuest: 2 });
  await pool.start();
  const first = await pool.take("one", signal);
  first.over();
  const other = await pool.take("two", signal);
  expect(other.guest).not.toBe(first.guest);
  const again = await pool.take("one", signal);
  expect(again.guest).toBe(first.guest);
  again.over();
  expect(first.guest.isOver).toBe(true);
});

test("runs that nobody has signed share no guest", async () => {
  const { pool, causes } = poolOf({ runsPerGuest: 5 });
  await pool.start();
  const first = await pool.take("", signal);
  first.over();
  expect(causes).toEqual(["served"]);
  expect((await pool.take("", signal)).guest).not.toBe(first.guest);
});

test("never more guests than allowed, those that end included", async () => {
  const { pool, booted, living } = poolOf({ most: 3, ahead: 8, booting: 8 });
  await pool.start();
  await expect.poll(() => pool.counts.ready).toBe(3);
  expect(booted).toHaveLength(3);
  const slow = booted[0] as Guest;
  slow.end = async () => undefined;
  const leases = await Promise.all(["a", "b", "c"].map((name) => pool.take(name, signal)));
  for (const lease of leases) lease.over();
  expect(pool.counts.ending).toBeGreaterThan(0);
  await expect.poll(() => pool.counts.ready).toBe(2);
  slow.die();
  await expect.poll(() => pool.counts.ready).toBe(3);
  expect(living()).toBe(3);
});

test("a principal's idle guest makes room for others who wait", async () => {
  const { pool, causes } = poolOf({ most: 1, ahead: 0, runsPerGuest: 5 });
  const taken = pool.take("one", signal);
  (await taken).over();
  const other = await pool.take("two", signal);
  expect(causes).toEqual(["evicted"]);
  expect(other.guest).not.toBe((await taken).guest);
});

test("who waits too long, or leaves, gets none and keeps none", async () => {
  const { pool, booted } = poolOf({ areReady: false, waitMs: 5 });
  const busy = await pool.take("one", signal).catch((error: unknown) => error);
  expect(busy).toMatchObject({ code: "runner_busy", status: 503, headers: { "retry-after": "1" } });
  const leaving = new AbortController();
  const left = poolOf({ areReady: false });
  const taken = left.pool.take("one", leaving.signal);
  leaving.abort(new ServiceError("execution_cancelled"));
  await expect(taken).rejects.toMatchObject({ code: "execution_cancelled" });
  for (const guest of [...booted, ...left.booted]) guest.getReady();
  await expect.poll(() => left.pool.counts).toMatchObject({ busy: 0 });
});

test("one that does not get ready is ended and told of, until one does", async () => {
  const { pool, booted, causes } = poolOf({ areReady: false });
  const started = pool.start();
  await expect.poll(() => booted.length).toBe(1);
  booted[0]?.fail();
  await expect.poll(() => causes).toEqual(["boot"]);
  expect(pool.problem).toBe("no microVM gets ready; the launcher's log says why");
  await expect.poll(() => booted.length).toBe(2);
  booted[1]?.getReady();
  await started;
  expect(pool.problem).toBeUndefined();
});

test("one that cannot be started counts as one that does not boot, until one can", async () => {
  const guest = new Guest();
  guest.getReady();
  const boot = vi.fn(async () => guest).mockRejectedValueOnce(new Error("no control group"));
  const { pool, causes } = poolOf({ boot });
  const started = pool.start();
  await expect.poll(() => causes).toEqual(["boot"]);
  expect(pool.problem).toBe("no microVM gets ready; the launcher's log says why");
  await started;
  expect([causes, boot.mock.calls.length]).toEqual([["boot"], 2]);
});

test("a lease that has ended does not end a later lease of its guest", async () => {
  const { pool, causes } = poolOf({ runsPerGuest: 3 });
  await pool.start();
  const first = await pool.take("one", signal);
  first.over();
  const second = await pool.take("one", signal);
  expect(second.guest).toBe(first.guest);
  first.fail("failed");
  first.over();
  expect([causes, second.guest.isOver, pool.counts.busy]).toEqual([[], false, 1]);
});

test("one that ends by itself is replaced", async () => {
  const { pool, booted, causes } = poolOf();
  await pool.start();
  booted[0]?.die();
  await expect.poll(() => pool.counts.ready).toBe(1);
  expect([booted.length, causes]).toEqual([2, ["lost"]]);
});

test("one that ends as it gets ready is no guest, and another is booted", async () => {
  const { pool, booted } = poolOf({ areReady: false });
  let isStarted = false;
  const start = pool.start().then(() => {
    isStarted = true;
  });
  await expect.poll(() => booted.length).toBe(1);
  booted[0]?.die();
  booted[0]?.getReady();
  await expect.poll(() => booted.length).toBe(2);
  expect(isStarted).toBe(false);
  booted[1]?.getReady();
  await start;
  expect((await pool.take("one", signal)).guest).toBe(booted[1]);
});

test("a paused guest is kept, and ends when its program is given up", async () => {
  const { pool, causes } = poolOf();
  await pool.start();
  const lease = await pool.take("one", signal);
  lease.pause();
  expect(pool.counts.paused).toBe(1);
  lease.goOn();
  expect(pool.counts.busy).toBe(1);
  lease.fail("evicted");
  lease.fail("failed");
  expect(causes).toEqual(["evicted"]);
  expect(lease.guest.isOver).toBe(true);
});

test("an old guest ends, at once or after its run", async () => {
  const { pool, booted, causes } = poolOf({ maxAgeMs: 1, ahead: 0, runsPerGuest: 5 });
  const lease = await pool.take("one", signal);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(booted[0]?.isOver).toBe(false);
  lease.over();
  expect(causes).toEqual(["age"]);
});

test("a guest that waits long for its first run makes room for another; one that has had a run stays", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { pool, booted, causes, living } = poolOf({ maxUnusedMs: 600_000, runsPerGuest: 5 });
  await pool.start();
  (await pool.take("one", signal)).over();
  await vi.advanceTimersByTimeAsync(600_000);
  expect(booted.map(({ isOver }) => isOver)).toEqual([false, true, false]);
  expect(causes).toEqual(["age"]);
  await vi.advanceTimersByTimeAsync(600_000);
  expect([living(), booted.length]).toEqual([2, 4]);
});

test("guests that have waited long are replaced one after the other: there is always one for a run", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { pool, booted, causes, living } = poolOf({
    maxUnusedMs: 600_000,
    ahead: 3,
    booting: 3,
    areReady: false,
  });
  const getReady = () => {
    for (const guest of booted) guest.getReady();
    return vi.advanceTimersByTimeAsync(0);
  };
  const started = pool.start();
  await getReady();
  await started;
  await vi.advanceTimersByTimeAsync(610_000);
  for (let replaced = 1; replaced <= 3; replaced++) {
    expect([causes.length, pool.counts.ready, pool.counts.booting]).toEqual([replaced, 2, 1]);
    await getReady();
    await vi.advanceTimersByTimeAsync(1000);
  }
  expect([causes, living(), pool.counts.ready]).toEqual([["age", "age", "age"], 3, 3]);
  await pool.close();
  expect(vi.getTimerCount()).toBe(0);
});

test("one that dies before it is ready has failed to boot, and the next boot waits as after any failure", async () => {
  const { pool, booted, causes } = poolOf({ areReady: false, booting: 1 });
  void pool.start();
  await expect.poll(() => booted.length).toBe(1);
  booted[0]?.die();
  await sleep(300);
  expect([causes, booted.length]).toEqual([["boot"], 1]);
  expect(pool.problem).toContain("no microVM gets ready");
  await expect.poll(() => booted.length).toBe(2);
  await pool.close();
});

test("after a failed boot no more guests are made than there may be", async () => {
  const { pool, booted, living } = poolOf({ areReady: false, most: 2, ahead: 2 });
  void pool.start();
  await expect.poll(() => booted.length).toBe(2);
  booted[0]?.fail();
  // Another one's success: its place is taken before the pause after the failure is over.
  booted[1]?.getReady();
  await expect.poll(() => booted.length).toBe(3);
  booted[2]?.getReady();
  await expect.poll(() => pool.counts.ready).toBe(2);
  await sleep(1500);
  expect([living(), booted.length]).toEqual([2, 3]);
  await pool.close();
});

test("where none is kept ahead, one is booted at the start all the same, and serves the first run", async () => {
  const { pool, booted } = poolOf({ ahead: 0 });
  await pool.start();
  expect((await pool.take("one", signal)).guest).toBe(booted[0]);
  expect(booted).toHaveLength(1);
});

test("nothing waits for a guest that is gone", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { pool, living } = poolOf({ ahead: 0 });
  for (const name of ["one", "two", "three"]) {
    const lease = await pool.take(name, signal);
    lease.pause();
    if (name === "one") lease.guest.die();
    else if (name === "two") lease.fail("evicted");
    else lease.over();
  }
  await vi.advanceTimersByTimeAsync(0);
  expect([living(), vi.getTimerCount()]).toEqual([0, 0]);
});

test("nothing is left when it is closed", async () => {
  const { pool, living } = poolOf({ ahead: 3 });
  await pool.start();
  await pool.take("one", signal);
  await pool.close();
  expect(living()).toBe(0);
  await new Promise((resolve) => setImmediate(resolve));
  expect(living()).toBe(0);
});
