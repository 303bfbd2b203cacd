import { EventEmitter } from "node:events";
import { newId, ServiceError } from "@svc/contracts";
import type { Redis } from "@svc/service-kit";
import { describe, expect, it, vi } from "vitest";
import { Cancellations } from "../../src/cancellations.ts";
import { CANCEL_CHANNEL } from "../../src/protocol.ts";

/** Cancellations and the channel that they come from. */
async function listening() {
  const channel = new EventEmitter() as EventEmitter & { subscribe: () => Promise<void> };
  channel.subscribe = async () => {};
  const cancels = new Cancellations();
  await cancels.listen(channel as unknown as Redis);
  const publish = (id: string, on = CANCEL_CHANNEL) => channel.emit("message", on, id);
  return { cancels, publish };
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

  it("of a lost lock say whether the job runs here: one that has ended needs no warning", async () => {
    const { cancels } = await listening();
    const id = newId();
    const { signal, done } = cancels.begin(id);
    expect(cancels.abort(id, new Error("lost"))).toBe(true);
    expect(signal.aborted).toBe(true);
    done();
    expect(cancels.abort(id, new Error("lost"))).toBe(false);
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
