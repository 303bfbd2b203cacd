import { EventEmitter } from "node:events";
import { setImmediate } from "node:timers/promises";
import { newId, ServiceError } from "@svc/contracts";
import { type CancellationKind, Cancellations, type Redis, sendCancellation } from "@svc/service-kit";
import { describe, expect, it, vi } from "vitest";

const KIND = {
  channel: "cancel",
  markKey: (id) => `mark:${id}`,
  rememberedMs: 60_000,
} as const satisfies CancellationKind;

/** Cancellations, the channel that they come from, and the store with their marks. */
async function listening(kind: CancellationKind = KIND) {
  const channel = new EventEmitter() as EventEmitter & { subscribe: () => Promise<void> };
  channel.subscribe = async () => {};
  const marks = new Set<string>();
  const asked: string[][] = [];
  let isAway = false;
  const mget = async (keys: string[]) => {
    if (isAway) throw new Error("away");
    asked.push(keys);
    return keys.map((key) => (marks.has(key) ? "" : null));
  };
  const cancels = new Cancellations({ mget } as unknown as Redis, kind);
  await cancels.listen(channel as unknown as Redis);
  return {
    cancels,
    asked,
    publish: (id: string, on: string = KIND.channel) => channel.emit("message", on, id),
    mark: (...ids: string[]) => ids.forEach((id) => void marks.add(kind.markKey(id))),
    loseStore: (lost: boolean) => {
      isAway = lost;
    },
    reconnect: () => channel.emit("ready"),
  };
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

  it("that come before the start are not remembered where it is not wanted", async () => {
    const { cancels, publish } = await listening({ ...KIND, rememberedMs: 0 });
    const id = newId();
    publish(id);
    expect(cancels.begin(id).signal.aborted).toBe(false);
  });

  it("are how work under them fails, however it fails, and nothing to work that succeeds or that they are not for", async () => {
    const { cancels, publish } = await listening();
    const work = (id: string, end: () => string) =>
      cancels.during(id, async () => {
        publish("mine");
        return end();
      });
    const fails = () => {
      throw new Error("broken");
    };
    await expect(work("mine", fails)).rejects.toEqual(new ServiceError("execution_cancelled"));
    await expect(work("mine", () => "done")).resolves.toBe("done");
    await expect(work("other", fails)).rejects.toThrow("broken");
  });

  it("are marked and published together", async () => {
    const sent: unknown[][] = [];
    const set = async (...words: unknown[]) => void sent.push(["set", ...words]);
    const publish = async (...words: unknown[]) => void sent.push(["publish", ...words]);
    await sendCancellation({ set, publish } as unknown as Redis, KIND, "job", 5000);
    expect(sent).toEqual([
      ["set", "mark:job", "", "PX", 5000],
      ["publish", "cancel", "job"],
    ]);
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
    const { cancels, mark, asked } = await listening();
    const [mine, other, ended] = [newId(), newId(), newId()];
    mark(mine, ended);
    const [first, second, third] = [mine, other, ended].map((id) => cancels.begin(id));
    third?.done();
    await cancels.look([mine, other, ended]);
    expect(asked).toEqual([[mine, other, ended].map(KIND.markKey)]);
    expect(first?.signal.reason).toEqual(new ServiceError("execution_cancelled"));
    expect([second?.signal.aborted, third?.signal.aborted]).toEqual([false, false]);
  });

  it("are looked for when the channel is there again, unless nothing runs", async () => {
    const { cancels, mark, asked, reconnect } = await listening();
    const id = newId();
    mark(id);
    reconnect();
    await setImmediate();
    const { signal } = cancels.begin(id);
    reconnect();
    await expect.poll(() => signal.aborted).toBe(true);
    expect(asked).toEqual([[KIND.markKey(id)]]);
  });

  it("are looked for again after a look that failed", async () => {
    const { cancels, mark, loseStore } = await listening();
    const { signal } = cancels.begin("job");
    mark("job");
    loseStore(true);
    await cancels.look(["job"]);
    expect(signal.aborted).toBe(false);
    loseStore(false);
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
