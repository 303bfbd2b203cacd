/** `./svc bench`: measures private copies of the system against bare commands; tables, results, pages. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineCommand } from "@svc/cli/command";
import { systemName } from "@svc/cli/install/packages";
import { ROOT } from "@svc/cli/instance";
import { wholeNumber } from "@svc/cli/options";
import { Problem, USAGE_EXIT_CODE } from "@svc/cli/problem";
import { continueAsRoot } from "@svc/cli/system/root";
import { startPrivateCopy } from "@svc/test-kit/system/private-copy";
import { choose, names } from "./choice.ts";
import { comparisonTables } from "./compare.ts";
import { languagesPage, measureLanguages } from "./languages.ts";
import { type OverloadResult, overload } from "./overload/run.ts";
import { overloadTables } from "./overload/tables.ts";
import { publish, readSources } from "./publish.ts";
import {
  BUSY,
  isBusy,
  loadOfMachine,
  type Result,
  readConditions,
  readResult,
  writeResult,
} from "./result.ts";
import { measure } from "./run.ts";
import { settingsOf } from "./settings.ts";
import { type SoakResult, soak } from "./soak/run.ts";
import { isSteady, soakTables } from "./soak/tables.ts";
import { asText, type Table } from "./table.ts";
import { tablesOf } from "./tables.ts";

const OPTIONS = {
  n: { value: "N", doc: "Samples of a light scenario (default 200); heavy ones take a share of it." },
  mode: { value: "MODE", doc: "Measure only `warm` or `cold` starts (default: both; soak: warm)." },
  runs: { value: "RUNS", doc: "Runs of `bench soak` (default 20000)." },
  seconds: { value: "S", doc: "Length of the flood of `bench overload` (default 60)." },
  json: { value: "FILE", doc: "Write the result with its conditions and all samples as JSON." },
  compare: { doc: "Compare two results instead: --compare BEFORE AFTER." },
  languages: { doc: "Measure a hello in every language and write docs/languages.md instead." },
  page: {
    doc: "Write docs/numbers.md and its charts instead: --page RESULT [RESULT OF A PART…]. What was measured apart, as by bench soak, becomes a chapter.",
  },
} as const;

const DEFAULT_N = 200;
const DEFAULT_RUNS = 20_000;
const DEFAULT_SECONDS = 60;
const SOAK = "soak";
const OVERLOAD = "overload";

export const bench = defineCommand({
  usage: "bench [SCENARIO…] [--n N] [--json FILE]",
  positionals: "[SCENARIO...]",
  summary: "Measures the whole service against bare commands on this machine.",
  details: `Scenarios: ${names().join(", ")}. Without a choice: all.
\`bench ${SOAK}\` sends a mixture of many runs instead and shows whether anything grows; exit code 1 when it does.
\`bench ${OVERLOAD}\` has one caller offer ten times what the copy can do, and measures refusals and another caller beside it.`,
  options: OPTIONS,
  run: async ({ values, positionals }) => {
    if (values.compare) return compare(positionals);
    if (values.page) return writePage(positionals);
    if (values.languages) {
      return (await continueAsRoot(process.argv.slice(2), "the jail")) ?? (await writeLanguages());
    }
    const isSoak = positionals.length === 1 && positionals[0] === SOAK;
    const isOverload = positionals.length === 1 && positionals[0] === OVERLOAD;
    const choice = choose(isSoak || isOverload ? [] : positionals, values.mode);
    const n = wholeNumber("n", values.n ?? String(DEFAULT_N), 1, 100_000);
    const runs = wholeNumber("runs", values.runs ?? String(DEFAULT_RUNS), 1000, 10_000_000);
    const seconds = wholeNumber("seconds", values.seconds ?? String(DEFAULT_SECONDS), 10, 3600);
    const asRoot = await continueAsRoot(process.argv.slice(2), "the jail");
    if (asRoot !== undefined) return asRoot;
    if (isOverload) {
      const result = await overload(seconds);
      report(overloadTables(result), result, values.json);
      return 0;
    }
    if (isSoak) {
      const result = await soak(choice.modes[0] ?? "warm", runs);
      report(soakTables(result), result, values.json);
      return isSteady(result) ? 0 : 1;
    }
    const result = await measure(choice, n);
    report(tablesOf(result), result, values.json);
    return 0;
  },
});

function report(
  tables: readonly Table[],
  result: Result | SoakResult | OverloadResult,
  file: string | undefined,
): void {
  for (const table of tables) console.log(`\n${asText(table)}`);
  if (isBusy(result.conditions)) console.error(BUSY);
  if (file !== undefined) writeResult(file, result);
}

function compare(paths: readonly string[]): number {
  const [before, after] = paths;
  if (before === undefined || after === undefined || paths.length !== 2) {
    throw usage("two results are needed: ./svc bench --compare BEFORE AFTER");
  }
  const tables = comparisonTables(readResult<Result>(before, "bench"), readResult<Result>(after, "bench"));
  for (const table of tables) console.log(`\n${asText(table)}`);
  return 0;
}

function writePage(paths: readonly string[]): number {
  if (paths.length === 0)
    throw usage(
      "a result of the whole is needed, and results of parts may follow: ./svc bench --page RESULT [PART…]",
    );
  console.log(`Written: ${publish(readSources(paths), join(ROOT, "docs")).join(", ")}`);
  return 0;
}

const usage = (message: string) => new Problem(message, undefined, USAGE_EXIT_CODE);

async function writeLanguages(): Promise<number> {
  const env = {
    ...settingsOf("cold"),
    SVC_LANGUAGES: "all",
    SANDBOX_PACKAGES_DIRECTORY: join(ROOT, ".pkgs-all"),
  };
  const page = join(ROOT, "docs/languages.md");
  const loadBefore = loadOfMachine();
  const copy = await startPrivateCopy({ env });
  try {
    const rows = await measureLanguages(copy);
    const conditions = readConditions(copy.instance.image, systemName(), loadBefore);
    writeFileSync(page, languagesPage(rows, conditions));
  } finally {
    await copy.stop();
  }
  console.log(`Written: ${page}`);
  return 0;
}
