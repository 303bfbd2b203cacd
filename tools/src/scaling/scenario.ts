/** A workload in the form of the simulation: the work of each part of a request, from the same coefficients as the plan. Pure. */
import { sum } from "../bench/statistics.ts";
import { type Cost, type Costs, FRONT, plus } from "./costs.ts";
import type { Machines, Plan } from "./plan.ts";
import type { PoolSpec } from "./simulation/pool.ts";
import { exponential } from "./simulation/random.ts";
import type { ClusterSpec, Round, SimulatedKind } from "./simulation/spec.ts";
import { extraOf, TOOLS, type Workload } from "./workload.ts";

/** Waiting jails of a kind, unless a setting says another number (packages/contracts/src/warm-pool.ts). */
const AUTOMATIC_MOST = 4;
/** services/runner/src/warm/jails.ts and runtimes/javascript/runtime.json. */
const COPY_AFTER_MS = 8;
const NODE_AFTER_MS = 20;

function roundOf(cost: Cost, speed: number): Round {
  const { cpuMs, laterMs } = cost;
  return {
    front: sum(FRONT.map((name) => cpuMs[name])) / speed,
    store: cpuMs.redis / speed,
    node: (cpuMs.worker + cpuMs.runner + cpuMs.jaild - laterMs) / speed,
  };
}

function poolOf(name: string, makeMs: number, slots: number): PoolSpec | undefined {
  if (/^(upload|download)-/.test(name)) return undefined;
  const most = Math.min(slots, AUTOMATIC_MOST);
  const isPrestarted = name === "hello-javascript" || name === "hello-bash";
  const refillMs = name === "hello-javascript" ? NODE_AFTER_MS : COPY_AFTER_MS;
  return { least: isPrestarted ? 1 : most, most, refillMs, makeMs };
}

export function simulatedKinds(
  costs: Costs,
  workload: Workload,
  slots: number,
  speed: number,
): SimulatedKind[] {
  const further = roundOf(costs.call, speed);
  return Object.entries(workload.mix).map(([name, share]) => {
    const isTools = name === TOOLS;
    const kind = isTools ? costs.tools : (costs.kinds[name] as Cost);
    const pool = poolOf(name, kind.laterMs / speed, slots);
    const first = pool === undefined ? kind : plus(kind, extraOf(costs, workload));
    return {
      name,
      share,
      first: pool === undefined ? { ...roundOf(first, speed), node: 0 } : roundOf(first, speed),
      further,
      calls: isTools ? workload.calls : 0,
      pauseMs: workload.pauseMs,
      waitMs: kind.idleMs + workload.waitMs,
      pool,
    };
  });
}

/** A cluster that refuses nothing before its queue is full. */
export const OPEN: Pick<
  ClusterSpec,
  "principals" | "seats" | "limit" | "queueWaitMs" | "variation" | "seed"
> = {
  principals: 1000,
  seats: 0,
  limit: 0,
  queueWaitMs: 60_000,
  variation: exponential,
  seed: 1,
};

const MINUTE = 60;
/** The default of the variable, for each API process. */
const JOB_QUEUE_LIMIT = 1000;

/** A minute of the workload on the machines of its plan. */
export function specOf(costs: Costs, workload: Workload, machines: Machines, plan: Plan): ClusterSpec {
  const { slots, machines: nodes } = plan.runners;
  return {
    ...OPEN,
    nodes,
    cores: machines.cores,
    slots,
    fronts: plan.fronts,
    limit: JOB_QUEUE_LIMIT * (plan.components.find(({ name }) => name === "api")?.processes ?? 1),
    kinds: simulatedKinds(costs, workload, slots, machines.speed),
    arrivals: { type: "rate", perSecond: workload.perSecond, seconds: MINUTE },
  };
}
