import { Clock } from "@svc/tools/scaling/simulation/clock";
import { Heap } from "@svc/tools/scaling/simulation/heap";
import { Processor } from "@svc/tools/scaling/simulation/processor";
import {
  constant,
  type Distribution,
  exponential,
  hyperexponential,
  streamOf,
} from "@svc/tools/scaling/simulation/random";
import { Station } from "@svc/tools/scaling/simulation/station";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const SERVICE_MS = 10;
const REQUESTS = 200_000;
const BATCHES = 40;

type Server = Pick<Station, "use" | "busyMs">;

interface Seen {
  mean: number;
  /** Standard error of the mean, by batch means. */
  error: number;
  busy: number;
}

/** Poisson arrivals at a server that is as busy as this; the mean time in the system. */
function observe(make: (clock: Clock) => Server, servers: number, busy: number, service: Distribution): Seen {
  const clock = new Clock();
  const server = make(clock);
  const [arrivals, work] = [streamOf(7, 1), streamOf(7, 2)];
  const gap = SERVICE_MS / (busy * servers);
  const times = new Float64Array(REQUESTS);
  let busyMs = 0;
  let endMs = 0;
  const arrive = (number: number) => {
    if (number === REQUESTS) {
      [busyMs, endMs] = [server.busyMs, clock.now];
      return;
    }
    const at = clock.now;
    server.use(SERVICE_MS * service(work), () => {
      times[number] = clock.now - at;
    });
    clock.after(gap * exponential(arrivals), () => arrive(number + 1));
  };
  arrive(0);
  clock.run();
  const size = REQUESTS / BATCHES;
  const means = Array.from({ length: BATCHES }, (_, batch) =>
    average(times.subarray(batch * size, (batch + 1) * size)),
  );
  const mean = average(means);
  const variance = average(means.map((each) => (each - mean) ** 2)) * (BATCHES / (BATCHES - 1));
  return { mean, error: Math.sqrt(variance / BATCHES), busy: busyMs / (endMs * servers) };
}

const average = (values: ArrayLike<number>) =>
  Array.from(values).reduce((sum, value) => sum + value, 0) / values.length;

/** The mean time in the system of M/M/c, by Erlang's formula. */
function erlang(servers: number, busy: number): number {
  const offered = servers * busy;
  let term = 1;
  let sum = 0;
  for (let number = 0; number < servers; number++) {
    sum += term;
    term *= offered / (number + 1);
  }
  const all = term / (1 - busy);
  const waits = all / (sum + all);
  return SERVICE_MS + (waits * SERVICE_MS) / (servers * (1 - busy));
}

/** Within four standard errors, and the error itself is small enough for that to say something. */
function expectTheory({ mean, error, busy }: Seen, theory: number, load: number): void {
  expect(error / theory).toBeLessThan(0.025);
  expect(Math.abs(mean - theory)).toBeLessThan(4 * error);
  expect(Math.abs(busy - load)).toBeLessThan(0.02);
}

describe("a station agrees with theory", () => {
  test("M/M/1: the mean time is service / (1 - load)", () => {
    expect(erlang(1, 0.7)).toBeCloseTo(SERVICE_MS / 0.3);
    for (const load of [0.3, 0.7, 0.8]) {
      const seen = observe((clock) => new Station(clock, 1), 1, load, exponential);
      expectTheory(seen, SERVICE_MS / (1 - load), load);
    }
  });

  test.each([2, 4, 16])("M/M/%i: the mean time is that of Erlang's formula", (servers) => {
    const seen = observe((clock) => new Station(clock, servers), servers, 0.8, exponential);
    expectTheory(seen, erlang(servers, 0.8), 0.8);
  });

  test("M/D/1: constant service waits half as long as exponential service", () => {
    const seen = observe((clock) => new Station(clock, 1), 1, 0.8, constant);
    expectTheory(seen, SERVICE_MS * (1 + 0.8 / (2 * 0.2)), 0.8);
  });
});

describe("processor sharing agrees with theory", () => {
  test.each([
    ["constant", constant],
    ["exponential", exponential],
    ["hyperexponential", hyperexponential(4)],
  ] as const)("M/G/1: with %s service the mean time is service / (1 - load)", (_, service) => {
    const seen = observe((clock) => new Processor(clock, 1), 1, 0.7, service);
    expectTheory(seen, SERVICE_MS / 0.3, 0.7);
  });

  test.each([2, 8])("on %i cores with exponential service the mean time is that of M/M/c", (cores) => {
    const seen = observe((clock) => new Processor(clock, cores), cores, 0.8, exponential);
    expectTheory(seen, erlang(cores, 0.8), 0.8);
  });

  test("one job takes one core only, and two of two cores do not slow each other", () => {
    const clock = new Clock();
    const processor = new Processor(clock, 2);
    const ends: number[] = [];
    for (const ms of [10, 20, 30]) processor.use(ms, () => ends.push(clock.now));
    clock.run();
    // Two thirds of a core each until 15, then one each.
    expect(ends.map(Math.round)).toEqual([15, 25, 35]);
    expect(processor.busyMs).toBeCloseTo(60);
  });

  test("what is dropped does not end, and what comes afterwards does", () => {
    const clock = new Clock();
    const processor = new Processor(clock, 1);
    const ends: string[] = [];
    processor.use(10, () => ends.push("dropped"));
    clock.after(5, () => processor.clear());
    clock.after(6, () => processor.use(10, () => ends.push(`done at ${clock.now}`)));
    clock.run();
    expect(ends).toEqual(["done at 16"]);
  });
});

test("a heap gives items in order, whatever the order in which they came", () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), (values) => {
      const heap = new Heap<number>((left, right) => left < right);
      for (const value of values) heap.push(value);
      const taken = values.map(() => heap.pop());
      expect(taken).toEqual([...values].sort((left, right) => left - right));
      expect(heap.pop()).toBeUndefined();
    }),
  );
});

test("events of one time run in the order in which they were made, cancelled ones not at all", () => {
  const clock = new Clock();
  const seen: number[] = [];
  for (const number of [1, 2, 3]) clock.after(5, () => seen.push(number));
  clock.after(5, () => seen.push(4)).isCancelled = true;
  clock.after(1, () => clock.after(4, () => seen.push(5)));
  clock.run();
  expect(seen).toEqual([1, 2, 3, 5]);
  expect(clock.now).toBe(5);
});

test("hyperexponential times have the mean 1 and the variation that is asked for", () => {
  const random = streamOf(3, 1);
  const draw = hyperexponential(4);
  const times = Array.from({ length: 200_000 }, () => draw(random));
  const mean = average(times);
  expect(mean).toBeCloseTo(1, 1);
  expect(average(times.map((time) => (time - mean) ** 2)) / mean ** 2).toBeGreaterThan(3.6);
  expect(average(times.map((time) => (time - mean) ** 2)) / mean ** 2).toBeLessThan(4.4);
});
