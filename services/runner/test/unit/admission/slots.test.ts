import { ServiceError } from "@svc/contracts";
import { Slots } from "@svc/runner/admission/slots";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const WAIT_MS = 30_000;
const slotsOf = (total: number, queueLimit: number) => new Slots({ total, queueLimit, queueWaitMs: WAIT_MS });
const never = () => new AbortController().signal;
const settle = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A request for a slot and how far it got. */
function ask(slots: Slots, options: Parameters<Slots["lease"]>[1] = {}) {
  const controller = new AbortController();
  const made = {
    state: "waiting",
    error: undefined as unknown,
    release: () => {},
    abort: () => controller.abort(new Error("left")),
  };
  slots.lease(controller.signal, options).then(
    (release) => Object.assign(made, { state: "leased", release }),
    (error) => Object.assign(made, { state: "refused", error }),
  );
  return made;
}

describe("slots", () => {
  it("are leased up to their number, then in the order of asking", async () => {
    const slots = slotsOf(2, 10);
    const asked = [1, 2, 3, 4].map(() => ask(slots));
    await settle();
    expect(asked.map(({ state }) => state)).toEqual(["leased", "leased", "waiting", "waiting"]);
    asked[1]?.release();
    await settle();
    expect(asked.map(({ state }) => state)).toEqual(["leased", "leased", "leased", "waiting"]);
    expect(slots.counts).toEqual({ total: 2, busy: 2 });
  });

  it("over the bound of the line the answer is runner_busy at once", async () => {
    const slots = slotsOf(1, 1);
    const asked = [1, 2, 3].map(() => ask(slots));
    await settle();
    expect(asked.map(({ state }) => state)).toEqual(["leased", "waiting", "refused"]);
    expect(asked[2]?.error).toMatchObject({
      code: "runner_busy",
      status: 503,
      headers: { "retry-after": "1" },
    });
  });

  it("go to programs that go on before those that begin, and the bound of the line is not for them", async () => {
    const slots = slotsOf(1, 1);
    const first = ask(slots);
    const begins = ask(slots);
    const goOn = [1, 2].map(() => ask(slots, { goesOn: true }));
    await settle();
    expect([begins, ...goOn].map(({ state }) => state)).toEqual(["waiting", "waiting", "waiting"]);
    for (const [holder, next] of [
      [first, goOn[0]],
      [goOn[0], goOn[1]],
      [goOn[1], begins],
    ]) {
      holder?.release();
      await settle();
      expect(next?.state).toBe("leased");
    }
  });

  it("without a line nobody waits", async () => {
    const slots = slotsOf(1, 0);
    const asked = [ask(slots), ask(slots)];
    await settle();
    expect(asked.map(({ state }) => state)).toEqual(["leased", "refused"]);
  });

  it("a waiter gives up after its time, and its place is free again", async () => {
    const slots = slotsOf(1, 1);
    const asked = [ask(slots), ask(slots)];
    await vi.advanceTimersByTimeAsync(WAIT_MS - 1);
    expect(asked[1]?.state).toBe("waiting");
    await vi.advanceTimersByTimeAsync(1);
    expect(asked[1]?.error).toMatchObject({ code: "runner_busy" });
    const next = ask(slots);
    asked[0]?.release();
    await settle();
    expect(next.state).toBe("leased");
  });

  it("a waiter that leaves makes room at once and never gets the slot", async () => {
    const slots = slotsOf(1, 1);
    const [holder, leaver] = [ask(slots), ask(slots)];
    await settle();
    leaver.abort();
    await settle();
    expect(leaver).toMatchObject({ state: "refused", error: new Error("left") });
    holder.release();
    expect(slots.counts.busy).toBe(0);
  });

  it("a caller that left before asking takes nothing", async () => {
    const slots = slotsOf(1, 1);
    await expect(slots.lease(AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
    expect(slots.counts.busy).toBe(0);
  });

  it("a slot cannot be given back twice", async () => {
    const slots = slotsOf(1, 0);
    const release = await slots.lease(never());
    release();
    expect(release).toThrow("given back twice");
    expect(slots.counts.busy).toBe(0);
  });

  it("at shutdown waiters are refused and leases go on", async () => {
    const slots = slotsOf(1, 5);
    const asked = [1, 2, 3].map(() => ask(slots));
    await settle();
    slots.close();
    await settle();
    expect(asked.map(({ state }) => state)).toEqual(["leased", "refused", "refused"]);
    expect(asked[1]?.error).toEqual(new ServiceError("shutting_down"));
    expect(slots.counts.busy).toBe(1);
  });

  it("under any schedule: never more leases than slots, no waiter lost, no slot lost", async () => {
    const step = fc.oneof(
      fc.constant({ kind: "ask" } as const),
      fc.nat().map((at) => ({ kind: "release", at }) as const),
      fc.nat().map((at) => ({ kind: "abort", at }) as const),
      fc.integer({ min: 1, max: WAIT_MS }).map((ms) => ({ kind: "pass", ms }) as const),
      fc.constant({ kind: "settle" } as const),
    );
    const schedule = fc.array(step, { maxLength: 60 });
    const sizes = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.nat({ max: 4 }));
    await fc.assert(
      fc.asyncProperty(sizes, schedule, async ([total, queueLimit], steps) => {
        const slots = slotsOf(total, queueLimit);
        const asked: ReturnType<typeof ask>[] = [];
        const held = () => asked.filter(({ state }) => state === "leased");
        const check = async () => {
          await settle();
          const waiting = asked.filter(({ state }) => state === "waiting").length;
          expect(held().length).toBeLessThanOrEqual(total);
          expect(slots.counts.busy).toBe(held().length);
          expect(waiting).toBeLessThanOrEqual(queueLimit);
          if (waiting > 0) expect(held().length).toBe(total);
        };
        const release = (at: number) => {
          const leases = held();
          const chosen = leases[at % leases.length];
          if (chosen === undefined) return;
          chosen.state = "returned";
          chosen.release();
        };
        for (const now of steps) {
          if (now.kind === "ask") asked.push(ask(slots));
          if (now.kind === "release") release(now.at);
          if (now.kind === "abort") asked[now.at % asked.length]?.abort();
          if (now.kind === "pass") await vi.advanceTimersByTimeAsync(now.ms);
          if (now.kind === "settle") await check();
        }
        await check();
        while (held().length > 0) {
          release(0);
          await check();
        }
        expect(slots.counts.busy).toBe(0);
        expect(asked.every(({ state }) => state === "returned" || state === "refused")).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
