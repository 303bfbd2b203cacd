import { simulate } from "@svc/tools/scaling/simulation/cluster";
import { constant, exponential } from "@svc/tools/scaling/simulation/random";
import type { ClusterSpec, Outcome, SimulatedKind } from "@svc/tools/scaling/simulation/spec";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const HELLO: SimulatedKind = {
  name: "hello",
  share: 1,
  first: { front: 1, store: 0.5, node: 10 },
  further: { front: 1, store: 0.5, node: 2 },
  calls: 0,
  pauseMs: 0,
  waitMs: 0,
  pool: undefined,
};

const SPEC: ClusterSpec = {
  seed: 1,
  nodes: 4,
  cores: 2,
  slots: 4,
  fronts: 1,
  kinds: [HELLO],
  variation: exponential,
  arrivals: { type: "rate", perSecond: 200, seconds: 10 },
  principals: 50,
  seats: 0,
  limit: 0,
  queueWaitMs: 60_000,
};

/** Everything that arrived was answered or refused, and nothing is held at the end. */
function expectConserved(outcome: Outcome): void {
  const { arrived, answered, refusedBySeats, refusedByLimit, gaveUp, failed, left } = outcome;
  expect(answered + refusedBySeats + refusedByLimit + gaveUp + failed).toBe(arrived);
  expect(left).toBe(0);
}

describe("a cluster", () => {
  test("is the same for the same seed, and another one for another", () => {
    expect(simulate(SPEC)).toEqual(simulate(SPEC));
    expect(simulate({ ...SPEC, seed: 2 }).latency).not.toEqual(simulate(SPEC).latency);
  });

  test("answers or refuses every arrival, whatever it is made of and whenever a node fails", () => {
    const pool = { least: 1, most: 4, refillMs: 8, makeMs: 5 };
    const specs = fc.record({
      seed: fc.nat(),
      nodes: fc.integer({ min: 1, max: 100 }),
      slots: fc.integer({ min: 1, max: 8 }),
      fronts: fc.integer({ min: 1, max: 3 }),
      seats: fc.constantFrom(0, 1, 4),
      limit: fc.constantFrom(0, 10, 100),
      queueWaitMs: fc.constantFrom(50, 1000, 60_000),
      perSecond: fc.integer({ min: 1, max: 400 }),
      calls: fc.integer({ min: 0, max: 3 }),
      atMs: fc.integer({ min: 0, max: 3000 }),
      waitMs: fc.constantFrom(0, 300),
    });
    let [repeated, refused] = [0, 0];
    fc.assert(
      fc.property(specs, ({ perSecond, calls, atMs, waitMs, ...rest }) => {
        const tools = { ...HELLO, name: "tools", calls, pauseMs: 100, waitMs, pool };
        const outcome = simulate({
          ...SPEC,
          ...rest,
          kinds: [{ ...HELLO, pool }, tools],
          arrivals: { type: "rate", perSecond, seconds: 4 },
          failures: [{ node: 0, atMs, forMs: 1000 }],
        });
        expectConserved(outcome);
        repeated += outcome.repeated;
        refused += outcome.refusedBySeats + outcome.refusedByLimit + outcome.gaveUp;
      }),
      { numRuns: 40, seed: 11 },
    );
    // Otherwise this says nothing of them.
    expect(repeated).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(0);
  });

  test("is as busy as what is asked of it", () => {
    const { busy, perSecond } = simulate(SPEC);
    expect(perSecond).toBeGreaterThan(190);
    expect(perSecond).toBeLessThan(210);
    expect(busy.nodes).toBeCloseTo((200 * 10) / 1000 / 8, 1);
    expect(busy.store).toBeCloseTo((200 * 0.5) / 1000, 1);
  });

  test("gives no more than its slowest part, and Redis can be that", () => {
    const many = {
      ...SPEC,
      nodes: 100,
      fronts: 4,
      arrivals: { type: "rate", perSecond: 3000, seconds: 3 },
    } as const;
    const outcome = simulate(many);
    expect(outcome.busy.store).toBeGreaterThan(0.99);
    // 0.5 ms each.
    expect(outcome.perSecond).toBeLessThan(2020);
    expectConserved(outcome);
  });

  test("with one machine for everything, clients get what its processors give", () => {
    const arrivals = { type: "clients", clients: 8, requests: 5000 } as const;
    const outcome = simulate({ ...SPEC, nodes: 1, fronts: 0, variation: constant, arrivals });
    // Two cores, 11.5 ms each.
    expect(outcome.perSecond).toBeCloseTo(2000 / 11.5, 0);
    expectConserved(outcome);
  });
});

describe("a node that fails for 30 s", () => {
  const failures = [{ node: 0, atMs: 10_000, forMs: 30_000 }];
  const arrivals = { type: "rate", perSecond: 400, seconds: 60 } as const;

  test("loses no run: what it had is taken up when its locks have expired", () => {
    const long = { ...HELLO, waitMs: 500 };
    const outcome = simulate({ ...SPEC, slots: 100, kinds: [long], arrivals, failures });
    expect(outcome.repeated).toBeGreaterThan(10);
    expect(outcome).toMatchObject({ answered: outcome.arrived, failed: 0 });
    // Five seconds until they stall, and then all of it.
    expect(outcome.latency.most).toBeGreaterThan(5500);
    expect(outcome.latency.p99).toBeLessThan(1000);
    expectConserved(outcome);
  });

  test("leaves its work to the others, which wait longer then", () => {
    const calm = simulate({ ...SPEC, arrivals });
    const outcome = simulate({ ...SPEC, arrivals, failures });
    // 400 runs of 10 ms on six cores instead of eight.
    expect(outcome.busy.busiestNode).toBeGreaterThan(calm.busy.busiestNode + 0.03);
    expect(outcome.latency.mean).toBeGreaterThan(calm.latency.mean);
  });

  test("begins paused programs of its own again, on another node", () => {
    const tools = { ...HELLO, calls: 2, pauseMs: 3000 };
    const outcome = simulate({ ...SPEC, kinds: [tools], arrivals: { ...arrivals, perSecond: 50 }, failures });
    expect(outcome).toMatchObject({ answered: outcome.arrived, failed: 0 });
    expectConserved(outcome);
  });

  test("ends a run with an error that is lost a second time", () => {
    const outcome = simulate({
      ...SPEC,
      nodes: 1,
      slots: 100,
      kinds: [{ ...HELLO, waitMs: 8000 }],
      arrivals: { type: "rate", perSecond: 2, seconds: 4 },
      failures: [
        { node: 0, atMs: 5000, forMs: 1000 },
        { node: 0, atMs: 12_000, forMs: 1000 },
      ],
    });
    expect(outcome.arrived).toBeGreaterThan(2);
    expect(outcome).toMatchObject({ answered: 0, repeated: outcome.arrived, failed: outcome.arrived });
    expectConserved(outcome);
  });
});

describe("fairness and refusals", () => {
  test("one caller beyond its seats is refused, and holds no more than these", () => {
    const outcome = simulate({ ...SPEC, principals: 1, seats: 4 });
    expect(outcome.refusedBySeats).toBeGreaterThan(0);
    expect(outcome.mostWaiting).toBeLessThanOrEqual(4);
    expectConserved(outcome);
  });

  test("callers beside one that floods are served as if it were not there but for its running runs", () => {
    const arrivals = { type: "rate", perSecond: 2000, seconds: 10 } as const;
    const outcome = simulate({ ...SPEC, arrivals, flood: 0.95, seats: 8, fronts: 3 });
    expect(outcome.refusedBySeats).toBeGreaterThan(5000);
    expect(outcome.others.refused).toBe(0);
    expect(outcome.others.p99).toBeLessThan(150);
    expectConserved(outcome);
  });

  test("beyond the limit of the API requests are refused at once, and the queue is bounded", () => {
    const arrivals = { type: "rate", perSecond: 2000, seconds: 10 } as const;
    const outcome = simulate({ ...SPEC, arrivals, limit: 100 });
    expect(outcome.refusedByLimit).toBeGreaterThan(1000);
    expect(outcome.mostWaiting).toBeLessThanOrEqual(100);
    expectConserved(outcome);
  });

  test("a run that waits too long is given up, and those after it are not", () => {
    const outcome = simulate({ ...SPEC, nodes: 1, queueWaitMs: 100 });
    expect(outcome.gaveUp).toBeGreaterThan(0);
    expect(outcome.answered).toBeGreaterThan(0);
    expect(outcome.latency.p99).toBeLessThan(500);
    expectConserved(outcome);
  });
});

describe("a warm pool", () => {
  const pool = { least: 2, most: 2, refillMs: 8, makeMs: 20 };
  const warm: SimulatedKind = { ...HELLO, pool };

  test("spares rare runs the making of their jail", () => {
    const arrivals = { type: "rate", perSecond: 5, seconds: 60 } as const;
    const spec = { ...SPEC, nodes: 1, variation: constant, arrivals };
    const rare = simulate({ ...spec, kinds: [warm] });
    const cold = simulate({ ...spec, kinds: [{ ...HELLO, first: { ...HELLO.first, node: 30 } }] });
    expect(rare.latency.p50).toBeCloseTo(11.5, 1);
    expect(cold.latency.p50).toBeCloseTo(31.5, 1);
    // The processors do the same work.
    expect(rare.busy.nodes).toBeCloseTo(cold.busy.nodes, 2);
  });

  test("is empty where runs come faster than jails can be made", () => {
    const arrivals = { type: "clients", clients: 8, requests: 2000 } as const;
    const outcome = simulate({ ...SPEC, nodes: 1, fronts: 0, variation: constant, kinds: [warm], arrivals });
    expect(outcome.perSecond).toBeLessThan((2000 / 31.5) * 1.05);
    expect(outcome.perSecond).toBeGreaterThan((2000 / 31.5) * 0.95);
  });
});
