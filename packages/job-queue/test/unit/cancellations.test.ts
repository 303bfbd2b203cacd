import { EventEmitter } from "node:events";
import { setImmediate } from "node:timers/promises";
import { newId, ServiceError } from "@svc/contracts";
import type { Redis } from "@svc/service-kit";
import { describe, expect, it, vi } from "vitest";
import { Cancellations } from "../../src/cancellations.ts";
import { CANCEL_CHANNEL, cancelKey } from "../../src/protocol.ts";

/** Cancellations and the channel that they come from. */
async function listening() {
  const channel = new EventEmitter() as EventEmitter & { subscribe: () => Promise<void> };
  channel.subscribe = async () => {};
  const cancels = new Cancellations();
  await cancels.listen(channel as unknown as Redis);
  const publish = (id: string, on = CANCEL_CHANNEL) => channel.emit("message", on, id);
  return { cancels, publish, reconnect: () => channel.emit("ready") };
}

/** A store with marks of these jobs, and what it was asked for. */
function marksOf(...marked: string[]) {
  const asked: string[][] = [];
  const mget = async (keys: string[]) => {
    asked.push(keys);
    return keys.map((key) => (marked.some((id) => key === cancelKey(id)) ? "" : null));
  };
  return { redis: { mget } as unknown as Redis, asked };
}

describe("cancellations", () => {
  it("abort the job that runs, and no other one", async () => {
    const { cancels, publish } = await listening();
    const [mine, other] = [newId(), newId()];
    const first = cancels.begin(mine);
    const second = cancels.begin(other);
    publish(mine);
    expect(first.signal.reason).toEqual(new ServiceError("execution_cancelled"));
    expect(second.signal.aborted).toBe(false);
  });

  it("that come before the start abort the job when it starts, once", async () => {
    const { cancels, publish } = await listening();
    const id = newId();
    publish(id);
    expect(cancels.begin(id).signal.aborted).toBe(true);
    expect(cancels.begin(id).signal.aborted).toBe(false);
  });

  it("reach each run of a job that runs twice, until that run has ended", async () => {
    const { cancels, publish } = await listening();
    const id = newId();
    const [lost, second, third] = [cancels.begin(id), cancels.begin(id), cancels.begin(id)];
    lost.abort(new Error("its lock was lost"));
    expect([lost, second, third].map(({ signal }) => signal.aborted)).toEqual([true, false, false]);
    lost.done();
    second.done();
    publish(id);
    expect([second.signal.aborted, third.signal.aborted]).toEqual([false, true]);
    const fourth = cancels.begin(id);
    third.done();
    cancels.abortAll(new ServiceError("shutting_down"));
    expect(fourth.signal.reason).toEqual(new ServiceError("shutting_down"));
  });

  it("on another channel mean nothing", async () => {
    const { cancels, publish } = await listening();
    const id = newId();
    publish(id, "svc:other");
    expect(cancels.begin(id).signal.aborted).toBe(false);
  });

  it("of a finished job abort nothing", async () => {
    const { cancels, publish } = await listening();
    const id = newId();
    const { signal, done } = cancels.begin(id);
    done();
    publish(id);
    expect(signal.aborted).toBe(false);
  });

  it("at shutdown abort everything that runs, with the reason given", async () => {
    const { cancels } = await listening();
    const jobs = [newId(), newId()].map((id) => cancels.begin(id));
    cancels.abortAll(new ServiceError("shutting_down"));
    for (const { signal } of jobs) expect(signal.reason).toEqual(new ServiceError("shutting_down"));
  });

  it("that were not heard of are found by their marks, all in one question", async () => {
    const { cancels } = await listening();
    const [mine, other, ended] = [newId(), newId(), newId()];
    const { redis, asked } = marksOf(mine, ended);
    cancels.lookBy(redis);
    const [first, second, third] = [mine, other, ended].map((id) => cancels.begin(id));
    third?.done();
    await cancels.look([mine, other, ended]);
    expect(asked).toEqual([[mine, other, ended].map(cancelKey)]);
    expect(first?.signal.reason).toEqual(new ServiceError("execution_cancelled"));
    expect([second?.signal.aborted, third?.signal.aborted]).toEqual([false, false]);
  });

  it("are looked for when the channel is there again, unless nothing runs", async () => {
    const { cancels, reconnect } = await listening();
    const id = newId();
    const { redis, asked } = marksOf(id);
    cancels.lookBy(redis);
    reconnect();
    await setImmediate();
    const { signal } = cancels.begin(id);
    reconnect();
    await expect.poll(() => signal.aborted).toBe(true);
    expect(asked).toEqual([[cancelKey(id)]]);
  });

  it("are looked for again after a look that failed", async () => {
    const { cancels } = await listening();
    const { signal } = cancels.begin("job");
    cancels.lookBy({ mget: () => Promise.reject(new Error("away")) } as unknown as Redis);
    await cancels.look(["job"]);
    expect(signal.aborted).toBe(false);
    cancels.lookBy(marksOf("job").redis);
    await cancels.look(["job"]);
    expect(signal.aborted).toBe(true);
  });

  it("are forgotten a minute later and never remembered without bound", async () => {
    vi.useFakeTimers();
    try {
      const { cancels, publish } = await listening();
      const [old, late] = [newId(), newId()];
      publish(old);
      vi.advanceTimersByTime(60_001);
      publish(late);
      expect(cancels.begin(old).signal.aborted).toBe(false);
      expect(cancels.begin(late).signal.aborted).toBe(true);
      const first = newId();
      publish(first);
      for (let count = 0; count < 10_000; count++) publish(newId());
      expect(cancels.begin(first).signal.aborted).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  });
});
