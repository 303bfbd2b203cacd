/** `./svc scaling`: what a load needs, from measured costs; a simulation of it; and the measurement behind it. */
import { writeFileSync } from "node:fs";
import { defineCommand } from "@svc/cli/command";
import { wholeNumber } from "@svc/cli/options";
import { continueAsRoot } from "@svc/cli/system/root";
import { asJson } from "../bench/result.ts";
import { asText } from "../bench/table.ts";
import { costsOf } from "./costs.ts";
import { measureAccounts } from "./measure/measure.ts";
import { machinesOf, OPTIONS, workloadOf } from "./options.ts";
import { memoryOf, planFor } from "./plan.ts";
import { readMeasurements } from "./results.ts";
import { specOf } from "./scenario.ts";
import { simulate } from "./simulation/cluster.ts";
import { planTables, simulationTable } from "./tables.ts";
import { USUAL } from "./workload.ts";

const DEFAULT_N = 200;

export const scaling = defineCommand({
  usage: "scaling [--rps N] [--mix KIND=SHARE,…] [OPTION…]",
  summary: "Says what a load needs: processors, machines, memory, traffic.",
  details: `Default mix: ${Object.entries(USUAL.mix)
    .map((entry) => entry.join("="))
    .join(",")}.
docs/scaling.md says what the numbers rest on, and what has not been measured.`,
  options: {
    ...OPTIONS,
    simulate: { doc: "Simulate a minute of it, too: latencies, and how busy the machines are." },
    json: { doc: "Print the plan as JSON." },
    measure: {
      value: "FILE",
      doc: "Measure the costs of each kind on this machine instead, and write them.",
    },
    n: { value: "N", doc: `With --measure: requests of a light kind are half of it (default ${DEFAULT_N}).` },
  },
  run: async ({ values }) => {
    if (values.measure !== undefined) {
      const n = wholeNumber("n", values.n ?? String(DEFAULT_N), 20, 100_000);
      const asRoot = await continueAsRoot(process.argv.slice(2), "the jail");
      if (asRoot !== undefined) return asRoot;
      writeFileSync(values.measure, asJson(await measureAccounts(n)));
      return 0;
    }
    const { quiet, accounts } = readMeasurements();
    const costs = costsOf(quiet, accounts, "separate");
    const [workload, machines] = [workloadOf(values, costs), machinesOf(values)];
    const plan = planFor(workload, machines, costs, memoryOf(quiet));
    if (values.json) console.log(JSON.stringify(plan, undefined, 2));
    else for (const table of planTables(plan)) console.log(`\n${asText(table)}`);
    if (values.simulate) {
      const outcome = simulate(specOf(costs, workload, machines, plan));
      console.log(`\n${asText(simulationTable([{ name: `${workload.perSecond} per second`, outcome }]))}`);
    }
    return 0;
  },
});
