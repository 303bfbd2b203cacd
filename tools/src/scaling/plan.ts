/** Processors, machines, memory and traffic that a workload needs. Pure. */
import { capacityOf, memoryOfJails } from "@svc/cli/capacity";
import type { Result } from "../bench/result.ts";
import { sum } from "../bench/statistics.ts";
import { COMPONENTS, type Component, type Cost, type Costs, FRONT, type Hop } from "./costs.ts";
import { averageCost, shareOf, shareOfRuns, TOOLS, type Workload } from "./workload.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** An Ethernet of 1 Gbit/s, in bytes. */
const GIGABIT = 125_000_000;

export interface Machines {
  cores: number;
  memoryGib: number;
  /** The highest share of a processor, and of Redis's thread, that may be used. */
  busy: number;
  /** The speed of a core relative to the one of the measurements. */
  speed: number;
}

export const MACHINES: Machines = { cores: 8, memoryGib: 32, busy: 0.6, speed: 1 };

/** Memory in MiB, as measured. */
export interface MeasuredMemory {
  jaild: number;
  runner: number;
  program: number;
  paused: number;
}

export interface Plan {
  cost: Cost;
  /** Redis is one, with one thread: where it is not enough, more machines do not help. */
  redisIsEnough: boolean;
  /** Processors in use, and the number of processes of each component, where a process has one thread. */
  components: readonly { name: Component; processors: number; processes: number }[];
  processors: number;
  /** Whether one machine of this size is enough for everything. */
  fitsOne: boolean;
  runners: { machines: number; slots: number; runningAtOnce: number; limitedBy: "processors" | "memory" };
  fronts: number;
  redis: { busy: number; commandsPerSecond: number; memoryMib: number; mibPerSecond: number };
  /** Between a component and its callers. */
  mbitPerSecond: Readonly<Record<Hop, number>>;
  objects: { storedPerSecond: number; readPerSecond: number };
  paused: { programs: number; mib: number };
  /** Memory of a runner machine: with small programs, and when every slot uses all that it may. */
  runnerMemoryMib: { small: number; worst: number };
  /** Requests per second at which something is full that more machines do not widen, in ascending order. */
  limits: readonly { what: string; perSecond: number }[];
}

export function memoryOf(quiet: Result): MeasuredMemory {
  const warm = quiet.modes.warm;
  const after = warm?.memory?.afterLoadMib ?? {};
  // Of as many as are kept live at once.
  const paused = Math.max(...(warm?.paused ?? []).map(({ perProgramMib }) => perProgramMib));
  return {
    jaild: after.jaild ?? 0,
    runner: after.runner ?? 0,
    program: warm?.memory?.perProgramMib ?? 0,
    paused,
  };
}

export function planFor(workload: Workload, machines: Machines, costs: Costs, memory: MeasuredMemory): Plan {
  const { perSecond } = workload;
  const cost = averageCost(costs, workload);
  const processors = (name: Component) => (cost.cpuMs[name] * perSecond) / 1000 / machines.speed;
  const used = COMPONENTS.map((name) => ({ name, processors: processors(name) }));
  const total = sum(used.map((each) => each.processors));
  const capacity = machines.cores * machines.busy;
  const front = sum(FRONT.map(processors));
  const runners = runnersFor(workload, machines, cost);
  const pausedPrograms =
    perSecond * shareOf(workload, (name) => name === TOOLS) * workload.calls * (workload.pauseMs / 1000);
  return {
    cost,
    redisIsEnough: processors("redis") <= machines.busy,
    components: used.map((each) => ({
      ...each,
      processes: processesOf(each.name, each.processors / machines.busy, runners.machines),
    })),
    processors: total,
    fitsOne: total <= capacity && runners.runningAtOnce <= mostSlots(machines),
    runners,
    fronts: Math.max(1, Math.ceil(front / capacity)),
    redis: {
      busy: processors("redis"),
      commandsPerSecond: cost.commands * perSecond,
      memoryMib: (cost.byteSeconds * perSecond) / MIB,
      mibPerSecond: (cost.storeBytes * perSecond) / MIB,
    },
    mbitPerSecond: mapHops(cost, perSecond),
    objects: { storedPerSecond: cost.stored * perSecond, readPerSecond: cost.read * perSecond },
    paused: { programs: pausedPrograms, mib: pausedPrograms * memory.paused },
    runnerMemoryMib: {
      small: memory.jaild + memory.runner + runners.slots * memory.program,
      worst: memory.jaild + memory.runner + (runners.slots * slotOf(machines)) / MIB,
    },
    limits: limitsOf(cost, machines),
  };
}

/** There is one Redis, however busy; a runner and its jaild are on each runner machine. */
function processesOf(name: Component, wanted: number, machines: number): number {
  if (name === "redis") return 1;
  if (name === "jaild") return machines;
  return Math.max(name === "runner" || name === "worker" ? machines : 1, Math.ceil(wanted));
}

function mapHops({ bytes }: Cost, perSecond: number): Record<Hop, number> {
  const entries = Object.entries(bytes).map(([hop, each]) => [hop, (each * perSecond * 8) / 1e6]);
  return Object.fromEntries(entries) as Record<Hop, number>;
}

const capacityOn = ({ cores, memoryGib }: Machines) =>
  capacityOf({ cores, memoryBytes: memoryGib * GIB }, {}, []);
const slotOf = (machines: Machines) => capacityOn(machines).slotBytes;
const mostSlots = (machines: Machines) =>
  Math.floor(memoryOfJails(machines.memoryGib * GIB) / slotOf(machines));

/**
 * The number of programs in slots at once, by Little's law. A run's processor time is stretched by 1 / (1 - busy): the mean
 * of processor sharing on one processor, which is never less than on several.
 */
function runnersFor(workload: Workload, machines: Machines, cost: Cost): Plan["runners"] {
  const { cores, busy, speed } = machines;
  const nodeMs = (cost.cpuMs.worker + cost.cpuMs.runner + cost.cpuMs.jaild) / speed;
  const byProcessors = Math.max(1, Math.ceil((nodeMs * workload.perSecond) / 1000 / (cores * busy)));
  const inSlotMs = nodeMs / (1 - busy) + cost.idleMs + workload.waitMs * shareOfRuns(workload);
  const runningAtOnce = (inSlotMs * workload.perSecond) / 1000;
  // Twice the mean: a Poisson number of 16 is above it once in 7000.
  const wanted = 2 * runningAtOnce;
  const byMemory = Math.max(1, Math.ceil(wanted / mostSlots(machines)));
  const count = Math.max(byProcessors, byMemory);
  const usual = Math.min(capacityOn(machines).jobs, mostSlots(machines));
  return {
    machines: count,
    slots: Math.min(mostSlots(machines), Math.max(usual, Math.ceil(wanted / count))),
    runningAtOnce,
    limitedBy: byMemory > byProcessors ? "memory" : "processors",
  };
}

function limitsOf(cost: Cost, { cores, speed, memoryGib }: Machines): Plan["limits"] {
  const total = sum(Object.values(cost.cpuMs));
  const perMs = (ms: number) => (1000 * speed) / ms;
  const rows = [
    { what: `one machine for everything, ${cores} cores`, perSecond: perMs(total / cores) },
    { what: "Redis, one thread", perSecond: perMs(cost.cpuMs.redis) },
    { what: `Redis, ${memoryGib} GiB of memory`, perSecond: (memoryGib * GIB) / cost.byteSeconds },
    { what: "one API process", perSecond: perMs(cost.cpuMs.api) },
    { what: "one worker", perSecond: perMs(cost.cpuMs.worker) },
    { what: "one runner", perSecond: perMs(cost.cpuMs.runner) },
    { what: "one egress gateway", perSecond: perMs(cost.cpuMs["egress-gateway"]) },
    { what: "one file server", perSecond: perMs(cost.cpuMs["file-server"]) },
    { what: "1 Gbit/s at one egress gateway", perSecond: GIGABIT / cost.bytes["egress-gateway"] },
  ];
  return rows.filter(({ perSecond }) => Number.isFinite(perSecond)).sort((a, b) => a.perSecond - b.perSecond);
}
