import { newId } from "@svc/contracts";
import type { EvictionCause } from "@svc/runner/metrics";
import { ProgramRegistry, type RegistryOptions } from "@svc/runner/programmatic/program-registry";
import type { Log } from "@svc/service-kit";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const GIB = 2 ** 30;
const LONGEST_MS = 1000;
const log = { info: () => undefined } as unknown as Log;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function made(options: Partial<RegistryOptions> = {}) {
  const evicted: EvictionCause[] = [];
  const machine = { totalBytes: 8 * GIB, availableBytes: 7 * GIB };
  const settings = {
    maxPaused: 10,
    maxPerPrincipal: 10,
    longestPauseMs: LONGEST_MS,
    memory: () => machine,
    ...options,
  };
  const programs = new ProgramRegistry<ReturnType<typeof program>>(
    settings,
    { evicted: (cause) => evicted.push(cause) },
    log,
  );
  const pause = (change: Partial<ReturnType<typeof program>> = {}) => {
    const one = { ...program(), ...change };
    programs.begin(one);
    one.pausedAtMs = performance.now();
    programs.keep(one);
    return one;
  };
  return { programs, evicted, machine, pause };
}

function program(executionId = newId()) {
  return {
    executionId,
    principal: "one",
    round: 1,
    memoryBytes: 0,
    pausedAtMs: 0,
    kill: vi.fn(),
    onUnanswerable: undefined as (() => void) | undefined,
    counted: {
      enter: vi.fn(),
      runs: vi.fn(),
      paused: vi.fn(),
      resumed: vi.fn(),
      abandoned: vi.fn(),
      ended: vi.fn(),
    },
  };
}
const gone = expect.objectContaining({ code: "execution_not_found" });

describe("paused programs", () => {
  it("are taken by the number of their next round, once, and are not evicted any more", () => {
    const { programs, evicted, pause } = made();
    const one = pause();
    for (const round of [0, 1, 3]) expect(() => programs.take(one.executionId, round)).toThrow(gone);
    expect(programs.take(one.executionId, 2)).toBe(one);
    expect(() => programs.take(one.executionId, 2)).toThrow(gone);
    vi.advanceTimersByTime(2 * LONGEST_MS);
    expect([programs.paused, evicted, one.kill.mock.calls]).toEqual([0, [], []]);
  });

  it("are killed when they have waited too long, also when they were kept again in between", () => {
    const { programs, evicted, pause } = made();
    const one = pause();
    vi.advanceTimersByTime(LONGEST_MS - 10);
    programs.take(one.executionId, 2);
    programs.keep(one);
    vi.advanceTimersByTime(11);
    expect(evicted).toEqual(["timeout"]);
    expect(one.kill).toHaveBeenCalledWith(gone);
    expect(one.counted.abandoned).toHaveBeenCalledOnce();
    expect(() => programs.take(one.executionId, 2)).toThrow(gone);
  });

  it("are killed when memory runs short while they wait, the longest paused first", () => {
    const { evicted, machine, pause } = made({ longestPauseMs: 1_000_000 });
    const [old, young] = [pause({ memoryBytes: GIB }), pause({ memoryBytes: GIB })];
    machine.availableBytes = 0.5 * GIB;
    vi.advanceTimersByTime(2000);
    machine.availableBytes = 1.5 * GIB;
    vi.advanceTimersByTime(10_000);
    expect(evicted).toEqual(["memory"]);
    expect(old.kill).toHaveBeenCalledOnce();
    expect(young.kill).not.toHaveBeenCalled();
  });

  it("are killed when nobody can answer them any more", () => {
    const { evicted, pause } = made();
    const one = pause();
    one.onUnanswerable?.();
    expect(evicted).toEqual(["unanswerable"]);
    expect(one.kill).toHaveBeenCalledOnce();
  });

  it("are one per execution: a new attempt ends the old one, and a late pause of the old one", () => {
    const { programs, evicted, pause } = made();
    const old = pause();
    const fresh = program(old.executionId);
    programs.begin(fresh);
    expect(old.kill).toHaveBeenCalledOnce();
    programs.keep(old);
    expect([programs.paused, evicted]).toEqual([0, []]);
    programs.keep(Object.assign(fresh, { pausedAtMs: performance.now() }));
    programs.end(old);
    expect(programs.take(fresh.executionId, 2)).toBe(fresh);
  });

  it("are all killed at the end", () => {
    const { programs, pause } = made();
    const all = [pause(), pause()];
    programs.close();
    for (const one of all) expect(one.kill).toHaveBeenCalledOnce();
    expect(programs.paused).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});
