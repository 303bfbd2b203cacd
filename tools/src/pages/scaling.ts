/** docs/scaling.md: what loads need, by the model of tools/src/scaling, and how certain that is. */
import { asMarkdown, type Table } from "../bench/table.ts";
import { type Costs, costsOf, SOURCES } from "../scaling/costs.ts";
import { MACHINES, memoryOf, type Plan, planFor } from "../scaling/plan.ts";
import type { Measurements } from "../scaling/results.ts";
import { specOf } from "../scaling/scenario.ts";
import { simulate } from "../scaling/simulation/cluster.ts";
import type { ClusterSpec } from "../scaling/simulation/spec.ts";
import { limitsTable, planTables, type Simulated, simulationTable } from "../scaling/tables.ts";
import { type Validated, validated, validatedSoak } from "../scaling/validation.ts";
import { USUAL, type Workload } from "../scaling/workload.ts";
import { table } from "./table.ts";

const LOADS = [10, 100, 1000];
/** Requests per second that one Redis still carries. */
const MOST = 350;

interface Model {
  measurements: Measurements;
  costs: Costs;
  plan: (workload: Workload) => Plan;
}

const of = (perSecond: number): Workload => ({ ...USUAL, perSecond });

export function scalingPage(measurements: Measurements): string {
  const { quiet, accounts } = measurements;
  const costs = costsOf(quiet, accounts, "separate");
  const memory = memoryOf(quiet);
  const plan = (workload: Workload) => planFor(workload, MACHINES, costs, memory);
  const model = { measurements, costs, plan };
  const limits = plan(of(1)).limits;
  return `# Scaling

Made by \`npm run docs\` from \`bench/results/\` with \`tools/src/scaling/\`.

This page says how many machines a load needs, which part is full first, and what happens then. It is a calculation from costs that were measured on one machine
with two cores, and a simulation with the same costs. **Nobody has measured this service on two real machines**:
see [what has not been measured](#what-has-not-been-measured).

Calculate a load of your own:

\`\`\`sh
./svc scaling --rps 100 --mix hello-python=60,pandas=30,tools=10 --wait-ms 200 --cores 16 --memory 64 --simulate
./svc scaling --help          # all that a load may have; --json for programs
\`\`\`

For your own machine \`--speed\` corrects for its processors: 100 is a processor on which bare Python prints a word in 9.9 ms.

Everything below is for machines with ${MACHINES.cores} cores and ${MACHINES.memoryGib} GiB, used to ${MACHINES.busy * 100} % at most, and this mixture: ${mixture()}.
Your programs' own time comes on top (\`--own-ms\`, \`--wait-ms\`). It is usually the largest part.

${limitsSection(limits)}

${asMarkdown(examplesTable(model))}
At 1000 per second **one Redis is not enough**: its one thread for commands would have to do more than it can. The service does not shard Redis.
Run several copies of the service instead, each with a Redis of its own, and divide callers among them, for example by tenant. Sessions, files and paused programs
belong to one copy. The other numbers for 1000 per second hold for all copies together.

${asMarkdown(simulationTable(simulated(model)))}
${BEHAVIOUR}

## The model beside measurements

The table compares the simulation, with one machine and the clients of the benchmarks, with what the benchmarks measured ([numbers.md](numbers.md)), in requests per
second. The costs of the simulation are the costs of one request at a time; none was fitted to these numbers.

${validationTable(model)}

Where the processors are full, the simulation is right within 15 %. One client alone is slower than simulated, most of all with JavaScript: the model includes neither the
load generator on the same two cores nor the waking of idle processes. The soak ran on a slower day; its row is corrected by the time of bare Python
(${bareOf(measurements.quiet)} ms in the quiet measurement, ${bareOf(measurements.sessions)} ms on that day). The measured latencies under load have a longer tail
than the simulated ones: take simulated p99 as a lower bound.

Tests compare the simulator with theory where theory is exact (M/M/1, M/M/c, M/D/1, processor sharing of M/G/1 and M/M/c):
\`tools/test/unit/scaling/\`.

## Where the coefficients come from

${table(["coefficient", "source"], SOURCES)}

\`./svc scaling --measure FILE\` measures the second row again, as root, in about five minutes. Sums of processor time are coarse while a machine does
other work. The model takes only two things from this measurement: the proportions of components, and counts of commands and bytes, which other work does not change.

${NOT_MEASURED}`;
}

function mixture(): string {
  const kinds = Object.entries(USUAL.mix).map(([name, share]) => `${share} % ${name}`);
  return `${kinds.join(", ")} (${USUAL.calls} calls, each answered after ${USUAL.pauseMs / 1000} s)`;
}

function limitsSection(limits: Plan["limits"]): string {
  return `${asMarkdown(limitsTable({ limits } as Plan))}
1. The processors of the runners are full first. Add runner machines.
2. Then come components with one thread each: API, workers, runners, gateways. Run several replicas of them.
3. **Redis comes last and is the end**: there is only one, with one thread. Redis keeps a record of each file that programs store for
   \`SESSION_CACHE_TTL\` (24 h). So with a high rate of outputs it runs out of memory before it runs out of time.

Networks and object stores have far more room than this needs, unless files are large.`;
}

function examplesTable({ plan }: Model): Table {
  const plans = LOADS.map((perSecond) => planTables(plan(of(perSecond))));
  const needs = plans.map(([, table]) => table as Table);
  const used = plans.map(([components]) => components as Table);
  const cells = (tables: readonly Table[], row: number, column: number) =>
    tables.map(({ rows }) => rows[row]?.[column] ?? "");
  const rows = (needs[0]?.rows ?? []).map(([what = ""], row) => [what, ...cells(needs, row, 1)]);
  const processors = (used[0]?.rows ?? []).map(([name = ""], row) => [
    `processors of ${name} (processes)`,
    ...cells(used, row, 1).map((value, at) => `${value} (${used[at]?.rows[row]?.[2] ?? ""})`),
  ]);
  return {
    title: "10, 100 and 1000 requests per second",
    note: "Averages. The number of processes keeps each of them below the wanted share of its thread.",
    head: ["what", ...LOADS.map((perSecond) => `${perSecond} per second`)],
    rows: [...rows, ...processors],
  };
}

function simulated(model: Model): Simulated[] {
  const row = (name: string, perSecond: number, change: Partial<ClusterSpec> = {}): Simulated => {
    const workload = of(perSecond);
    const spec = specOf(model.costs, workload, MACHINES, model.plan(workload));
    return { name, outcome: simulate({ ...spec, ...change }) };
  };
  const failures = [{ node: 0, atMs: 20_000, forMs: 30_000 }];
  return [
    row("10 per second", 10),
    row("100 per second", 100),
    row(`${MOST} per second`, MOST),
    row(`${MOST} per second, a runner machine away for 30 s`, MOST, { failures }),
    row(`${MOST} per second, one caller sends nine of ten, 20 seats each`, MOST, { flood: 0.9, seats: 20 }),
    row(`${MOST} per second on one runner machine`, MOST, { nodes: 1 }),
    row("1000 per second on one Redis", 1000),
  ];
}

function validationTable({ measurements }: Model): string {
  const rows = [...validated(measurements), validatedSoak(measurements)].map(
    ({ what, inFlight, measured, simulated: value }: Validated) => [
      what,
      String(inFlight),
      measured.toFixed(1),
      value.toFixed(1),
      `${(value / measured).toFixed(2)} x`,
    ],
  );
  return table(["load", "in flight", "measured", "simulated", "simulated / measured"], rows);
}

const bareOf = ({ modes }: Measurements["quiet"]) => (modes.warm?.bare.python?.p50 ?? 0).toFixed(1);

const BEHAVIOUR = `## At the limit

- **A full runner tier** makes runs wait in the queue. Nothing is refused until an API process has \`JOB_QUEUE_LIMIT\` (1000) executions waiting or running. Then it
  answers 503 \`queue_saturated\` at once. An admitted run waits for that many runs divided by what the runners do per second. So
  lower \`JOB_QUEUE_LIMIT\` where callers would rather be refused early. A run that waits for \`JOB_QUEUE_WAIT_MS\` (60 s) is refused, too.
- **Fairness.** A caller beyond its seats (\`SVC_MAX_CONCURRENT_EXECUTIONS\`, 20) or its window gets 429 at once. Every caller's first waiting run goes
  before any caller's second ([limits.md](limits.md#limits-of-a-caller)). A run that has started is never preempted: keep the seats of a caller below
  the slots of all runners. Measured on two cores, on a machine that also did other work: a caller beside one that offers ten times what the copy can do had
  p50 89 ms instead of 12.5 ([numbers.md](numbers.md#another-principal-one-run-after-the-other)).
- **Refusals cost.** A refused request still takes processor time of the API. The simulation leaves that out.
- **A Redis without free memory** refuses writes, and components are not ready. Give it room for the growth of the first day, when no record of a file
  has expired yet.
- **A runner machine that fails** takes its running programs with it. Other workers run them again 5 s later, once. Paused programs begin again from the
  top when they are resumed. The other machines have to carry the load meanwhile: plan for one machine more than the average needs.
- **More than \`SANDBOX_MAX_PAUSED\` (32) paused programs** on a runner are not kept in memory. The oldest paused program of the user with most of them is evicted.
  It runs again from the top when it is resumed, which costs the program's time again. The calculation and the simulation keep all of them.
`;

const NOT_MEASURED = `## What has not been measured

- **Two real machines.** All costs were measured on one machine, over loopback. A network between components adds its round trips
  and its failures. \`tests/e2e/upgrade.test.ts\` and others run several runners, workers and API processes, on one machine.
- **More than two cores.** The model assumes that eight cores do four times as much as two.
- **Balancing.** The simulation gives runs to nodes with free slots in turn. In a real system each worker gives a run to the runner with the
  smallest share of slots in use by that worker. It asks runners for their slots every 5 s, and knows nothing of what others have sent there since.
- **Redis at its limit.** Its processor time for each run was measured at some 200 runs per second. Beyond that the model extends it in a straight line. With its
  append-only file on a slow disk Redis may be full earlier.
- **Failures of API machines, Redis and object stores** are not simulated. [operate.md](operate.md#health) says what was seen of them on one machine.
- **Programs.** The simulation draws their processor time at random (exponential, with the measured mean). Callers arrive at random and do not send refused
  requests again.
`;
