/** Compares the simulation with measurements: the throughput of the benches, from the costs of one request at a time. Pure. */
import type { Result } from "../bench/result.ts";
import { sum } from "../bench/statistics.ts";
import { costsOf } from "./costs.ts";
import type { Measurements } from "./results.ts";
import { OPEN, simulatedKinds } from "./scenario.ts";
import { simulate } from "./simulation/cluster.ts";
import { constant } from "./simulation/random.ts";
import { USUAL, type Workload } from "./workload.ts";

export interface Validated {
  what: string;
  inFlight: number;
  measured: number;
  simulated: number;
}

const REQUESTS = 4000;
/** As the benches set it (tools/src/bench/settings.ts). */
const SLOTS = 8;

/** Every load of the bench with warm starts: one machine, and as many clients as it had. */
export function validated({ quiet, accounts }: Measurements): Validated[] {
  const costs = costsOf(quiet, accounts, "combined");
  return loadsOf(quiet).map(({ scenario, inFlight, perSecond }) => {
    const workload = { ...USUAL, mix: { [scenario]: 1 } };
    const outcome = simulate({
      ...OPEN,
      variation: constant,
      nodes: 1,
      cores: quiet.conditions.cores,
      slots: SLOTS,
      fronts: 0,
      kinds: simulatedKinds(costs, workload, SLOTS, 1),
      arrivals: { type: "clients", clients: inFlight, requests: REQUESTS },
    });
    return { what: scenario, inFlight, measured: perSecond, simulated: outcome.perSecond };
  });
}

/** Runs of the soak, of a hundred. A kind of the soak without costs of its own counts as a kind that costs as much. */
const SOAK_MIX = { "hello-python": 35, pandas: 12, "hello-bash": 15, "hello-javascript": 10, tools: 5 };
const WITH_INPUT = 9;
const WITH_OUTPUT = 9;
/** Runs that wait for a limit of 500 ms, or are abandoned after 100 ms. */
const WAITING = [
  { share: 2, waitMs: 500 },
  { share: 3, waitMs: 100 },
];

/**
 * The mixture of the soak, eight at a time. Its machine was slower on that day. The measurement of sessions, twenty minutes
 * later, shows by how much for bare Python.
 */
export function validatedSoak({ quiet, accounts, soak, sessions }: Measurements): Validated {
  const costs = costsOf(quiet, accounts, "combined");
  const speed = bareMs(quiet) / bareMs(sessions);
  const kindsOf = (change: Partial<Workload>) =>
    simulatedKinds(costs, { ...USUAL, calls: 1, pauseMs: 0, ...change }, SLOTS, speed);
  const outcome = simulate({
    ...OPEN,
    variation: constant,
    nodes: 1,
    cores: soak.conditions.cores,
    slots: SLOTS,
    fronts: 0,
    kinds: [
      ...kindsOf({ mix: SOAK_MIX }),
      ...kindsOf({ mix: { "hello-python": WITH_INPUT }, inputs: 1 }),
      ...kindsOf({ mix: { "hello-bash": WITH_OUTPUT }, outputs: 1 }),
      ...WAITING.flatMap(({ share, waitMs }) => kindsOf({ mix: { "hello-bash": share }, waitMs })),
    ],
    arrivals: { type: "clients", clients: soak.concurrency, requests: REQUESTS },
  });
  const measured = sum(soak.tenths.map(({ perSecond }) => perSecond)) / soak.tenths.length;
  return { what: "the soak's mixture", inFlight: soak.concurrency, measured, simulated: outcome.perSecond };
}

const bareMs = ({ modes }: Result) => modes.warm?.bare.python?.p50 ?? Number.NaN;
const loadsOf = (quiet: Result) => quiet.modes.warm?.loads ?? [];
