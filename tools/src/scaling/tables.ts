/** Plans and simulations as tables. Pure. */
import type { Table } from "../bench/table.ts";
import type { Plan } from "./plan.ts";
import type { Outcome } from "./simulation/spec.ts";

const digits = (value: number, places: number) => value.toFixed(places);
const percent = (share: number) => `${(share * 100).toFixed(0)} %`;
const whole = (value: number) => (value >= 10 ? value.toFixed(0) : value.toFixed(1));

export function planTables(plan: Plan): Table[] {
  return [componentsTable(plan), needsTable(plan), limitsTable(plan)];
}

function componentsTable({ components }: Plan): Table {
  return {
    title: "Components",
    note: "Processors in use, and processes so that none is busier than asked for. jaild's are those of all jails.",
    head: ["component", "processors", "processes"],
    rows: components.map(({ name, processors, processes }) => [
      name,
      digits(processors, 2),
      String(processes),
    ]),
  };
}

function needsTable(plan: Plan): Table {
  const { runners, redis, mbitPerSecond, objects, paused, runnerMemoryMib } = plan;
  const front = plan.fronts === 1 ? "one machine" : `${plan.fronts} machines`;
  const layout = plan.fitsOne
    ? "one machine for everything"
    : `${runners.machines} with worker and runner, ${front} for API, gateway, file and tool call server, one for Redis`;
  return {
    title: "Needs",
    note: plan.redisIsEnough
      ? "On average, without growth."
      : "One Redis is not enough for this load: it is one, with one thread for commands. Fewer requests, or several copies of the service.",
    head: ["what", "how much"],
    rows: [
      ["machines", layout],
      ["SANDBOX_MAX_CONCURRENT_JOBS", `${runners.slots} on each runner, limited by ${runners.limitedBy}`],
      ["programs in their slots at once", whole(runners.runningAtOnce)],
      ["memory of a runner and its jaild, small programs", `${whole(runnerMemoryMib.small)} MiB`],
      ["memory of a runner and its jaild, every slot full", `${whole(runnerMemoryMib.worst / 1024)} GiB`],
      ["paused programs at once", `${whole(paused.programs)}, ${whole(paused.mib)} MiB`],
      ["Redis, busy", percent(redis.busy)],
      ["Redis, commands per second, those in scripts counted", whole(redis.commandsPerSecond)],
      ["Redis, memory", `${whole(redis.memoryMib)} MiB`],
      ["Redis, traffic", `${whole(redis.mibPerSecond)} MiB/s`],
      ["API to callers", `${whole(mbitPerSecond.api)} Mbit/s`],
      ["runners to workers", `${whole(mbitPerSecond.runner)} Mbit/s`],
      ["gateway to runners and workers", `${whole(mbitPerSecond["egress-gateway"])} Mbit/s`],
      ["file server to its callers", `${whole(mbitPerSecond["file-server"])} Mbit/s`],
      ["files stored per second", whole(objects.storedPerSecond)],
      ["files read per second", whole(objects.readPerSecond)],
    ],
  };
}

export function limitsTable({ limits }: Plan): Table {
  return {
    title: "What is full first",
    note: "Requests of this mix per second at which one of these has no time or room left.",
    head: ["what", "requests per second"],
    rows: limits.map(({ what, perSecond }) => [what, digits(perSecond, 0)]),
  };
}

export interface Simulated {
  name: string;
  outcome: Outcome;
}

export function simulationTable(rows: readonly Simulated[]): Table {
  return {
    title: "Simulation",
    note: "A minute. Milliseconds from the request to its answer, without the pauses of programs with tools.",
    head: [
      "load",
      "answered",
      "429",
      "503",
      "failed",
      "p50",
      "p95",
      "p99",
      "nodes busy",
      "Redis busy",
      "most waiting",
    ],
    rows: rows.map(({ name, outcome }) => [
      name,
      `${whole(outcome.perSecond)} per second`,
      String(outcome.refusedBySeats),
      String(outcome.refusedByLimit + outcome.gaveUp),
      String(outcome.failed),
      whole(outcome.latency.p50),
      whole(outcome.latency.p95),
      whole(outcome.latency.p99),
      percent(outcome.busy.nodes),
      percent(outcome.busy.store),
      String(outcome.mostWaiting),
    ]),
  };
}
