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

How many machines a load needs, what is full first, and what happens then. It is a calculation from costs that were measured on one machine
with two cores, and a simulation with the same costs. **Nobody has measured this service on two real machines**:
[what has not been measured](#what-has-not-been-measured) is at the end.

Ask for a load of your own:

\`\`\`sh
./svc scaling --rps 100 --mix hello-python=60,pandas=30,tools=10 --wait-ms 200 --cores 16 --memory 64 --simulate
./svc scaling --help          # all that a load may have; --json for programs
\`\`\`

On a machine of yours \`--speed\` corrects for its processors: 100 is one on which bare Python prints a word in 9.9 ms.

All below is for machines with ${MACHINES.cores} cores and ${MACHINES.memoryGib} GiB, used to ${MACHINES.busy * 100} % at most, and this mixture: ${mixture()}.
Your programs' own time comes on top (\`--own-ms\`, \`--wait-ms\`): it is usually most of it.

${limitsSection(limits)}

${asMarkdown(examplesTable(model))}
At 1000 per second **one Redis is not enough**: its one thread for commands would have to do more than it can. There is no sharding.
Several copies of the service do it, each with a Redis of its own and callers divided among them, as by tenant; sessions, files and paused programs
belong to one copy. What the other columns say of 1000 per second holds for all copies together.

${asMarkdown(simulationTable(simulated(model)))}
${BEHAVIOUR}

## The model beside measurements

The simulation with one machine and the benches' clients, against what the benches measured ([numbers.md](numbers.md)). Its costs are those of one
request at a time; none was fitted to these numbers. Requests per second.

${validationTable(model)}

Where the processors are full, it is right within 15 %. One client alone is slower than simulated, most of all with JavaScript: the model knows no
load generator on the same two cores, and no waking of idle processes. The soak ran on a slower day; its row is corrected by the time of bare Python
(${bareOf(measurements.quiet)} ms in the quiet measurement, ${bareOf(measurements.sessions)} ms on that day). Latencies of the benches' clients under load have a longer tail
than simulated ones: take simulated p99 as a lower bound.

The machinery is tested against theory where that is exact (M/M/1, M/M/c, M/D/1, processor sharing of M/G/1 and M/M/c):
\`tools/test/unit/scaling/\`.

## Where the coefficients come from

${table(["coefficient", "source"], SOURCES)}

\`./svc scaling --measure FILE\` measures the second row again, as root, in about five minutes. Sums of processor time are coarse while a machine does
other work; the model takes only the proportions of components from it, and counts of commands and bytes, which other work does not change.

${NOT_MEASURED}`;
}

function mixture(): string {
  const kinds = Object.entries(USUAL.mix).map(([name, share]) => `${share} % ${name}`);
  return `${kinds.join(", ")} (${USUAL.calls} calls, each answered after ${USUAL.pauseMs / 1000} s)`;
}

function limitsSection(limits: Plan["limits"]): string {
  return `${asMarkdown(limitsTable({ limits } as Plan))}
In words: processors of the runners are full first, and more runner machines are the answer. Then come components that are one thread each, and can be
there several times: API, workers, runners, gateways. **Redis comes last and is the end**: it is one, with one thread. Files that
programs store keep a record in Redis for \`SESSION_CACHE_TTL\` (24 h), so a high rate of outputs needs memory there before time; networks and object stores
have far more room than this needs unless files are large.`;
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
    note: "Averages; processes are as many as keep each below the wanted share of its thread.",
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

- **A full runner tier** makes runs wait in the queue; nothing is refused until an API process has \`JOB_QUEUE_LIMIT\` (1000) executions in hand. Then it
  answers 503 \`queue_saturated\` at once. The time that an admitted run waits is that many runs divided by what the runners do per second, so
  lower \`JOB_QUEUE_LIMIT\` where callers would rather be refused early. A run that waits for \`JOB_QUEUE_WAIT_MS\` (60 s) is refused, too.
- **Fairness.** A caller beyond its seats (\`SVC_MAX_CONCURRENT_EXECUTIONS\`, 20) or its window gets 429 at once, and everybody's first waiting run goes
  before anybody's second ([limits.md](limits.md#limits-of-a-caller)). A run that has started gives way to none: keep the seats of a caller below
  the slots of all runners. Measured on two cores, a caller beside one that offers ten times what the copy can do had p50 89 ms instead of 12.5,
  on a machine that did other work, too ([numbers.md](numbers.md#another-principal-one-run-after-the-other)).
- **Refusals cost.** A refused request still takes processor time of the API. The simulation leaves that out.
- **Redis full of memory** refuses writes, and components are not ready: give it room for the growth of the first day, when records of files
  have not begun to expire.
- **A runner machine that fails** takes its running programs with it: other workers take them up 5 s later, once. Paused programs begin again from the
  top when they are resumed. The others have to carry the load meanwhile: plan for one machine more than the average needs.
- **More than \`SANDBOX_MAX_PAUSED\` (32) paused programs** on a runner are not kept in memory; the user with most of them loses the one that was paused
  first. It is run again from the top when it is resumed, which costs the program's time again. The calculation and the simulation keep all of them.
`;

const NOT_MEASURED = `## What has not been measured

- **Two real machines.** All costs are of one machine, over loopback. A network between components adds its round trips
  and its failures. \`tests/e2e/upgrade.test.ts\` and others run several runners, workers and API processes, on one machine.
- **More than two cores.** That eight cores do four times as much as two is assumed.
- **Balancing.** The simulation gives runs to nodes with free slots in turn. In a real one each worker gives a run to the runner with the
  smallest share of slots in use by it. It asks runners for their slots every 5 s, and knows nothing of what others have sent there since.
- **Redis at its limit.** Its processor time for each run was measured at some 200 runs per second; beyond, it is a straight line. With its
  append-only file on a slow disk it may be full earlier.
- **Failures of API machines, Redis and object stores** are not simulated; [operate.md](operate.md#health) has what was seen of them on one machine.
- **Programs.** The simulation draws their processor time at random (exponential, with the measured mean); callers arrive at random and do not send again
  what was refused.
`;
