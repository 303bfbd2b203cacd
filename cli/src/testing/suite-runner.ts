/**
 * Runs suites in the order of the plan: stage by stage, the lanes of a stage side by side. What only one suite needs is
 * built in its lane, just before it; a build that fails is a failure of its suite, and the others go on.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installTestClient } from "../install/client.ts";
import { buildImage } from "../install/install.ts";
import { type Instance, ROOT, resolveInstance } from "../instance.ts";
import { MACHINE_IN_CI, passesOf, type Scope, type Suite, stagesOf } from "./plan.ts";
import { FUZZ, type Outcome, runCheck, runVitest, USUAL_CHECKS, type VitestProject } from "./suites.ts";
import { buildMachine, runMachine } from "./virtual-machine.ts";

export interface SuiteOptions {
  scope: Scope;
  /** Parts of the paths of test files; none: all files. */
  filters: readonly string[];
  vitestArguments: readonly string[];
  instance: Instance;
  /** Whether a failed test runs once more. */
  retry: boolean;
  /** Where the image of all languages lies; undefined: in a folder of its own. */
  packagesDir: string | undefined;
}

export async function runSuites(
  wanted: (suite: Suite) => boolean,
  options: SuiteOptions,
): Promise<Outcome[]> {
  const reports = mkdtempSync(join(tmpdir(), "svc-test-"));
  try {
    const outcomes: Outcome[] = [];
    for (const lanes of stagesOf(wanted)) {
      const aside = lanes.length > 1;
      const each = lanes.map(async (lane) => {
        const told: Outcome[] = [];
        for (const suite of lane) told.push(...(await runSuite(suite, { ...options, reports, aside })));
        return told;
      });
      outcomes.push(...(await Promise.all(each)).flat());
    }
    return outcomes;
  } finally {
    rmSync(reports, { recursive: true });
  }
}

interface Context extends SuiteOptions {
  reports: string;
  aside: boolean;
}

async function runSuite(suite: Suite, context: Context): Promise<Outcome[]> {
  const begun = performance.now();
  try {
    return await outcomesOf(suite, context);
  } catch (error) {
    const { message, advice = "" } = error as Error & { advice?: string };
    const seconds = (performance.now() - begun) / 1000;
    return [{ name: suite, passed: 0, failed: 1, seconds, failures: [`${message}\n${advice}`], flaky: [] }];
  }
}

async function outcomesOf(suite: Suite, context: Context): Promise<Outcome[]> {
  const { aside, scope, filters, instance } = context;
  switch (suite) {
    case "checks": {
      const outcomes: Outcome[] = [];
      for (const name of USUAL_CHECKS) outcomes.push(await runCheck(name, { aside }));
      return outcomes;
    }
    case "fuzz":
      return [await runCheck(FUZZ, { aside })];
    case "v2": {
      await built("the virtual machine", () => buildMachine(instance, unseen));
      return runMachine(scope === "ci" && filters.length === 0 ? MACHINE_IN_CI : filters, { aside });
    }
    case "compat":
      return runPasses(suite, context, await imageOfAllLanguages(context.packagesDir));
    case "client":
      await built("LibreChat's client (npm ci in tests/client)", () => installTestClient(unseen));
      return runPasses(suite, context);
    default:
      return runPasses(suite, context);
  }
}

async function runPasses(
  project: VitestProject,
  { scope, filters, vitestArguments, reports, aside, retry }: Context,
  own: Readonly<Record<string, string>> = {},
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const { title, env, files = [], exclude } of passesOf(project, scope, process.env)) {
    // A filter picks from a whole project.
    if (filters.length > 0 && files.length > 0) continue;
    const args = [
      ...(retry ? ["--retry=1"] : []),
      ...exclude.map((file) => `--exclude=${file}`),
      ...(filters.length > 0 ? filters : files),
      ...vitestArguments,
    ];
    const mayBeEmpty = filters.length + vitestArguments.length > 0;
    const options = { title, env: { ...own, ...env }, aside, mayBeEmpty };
    outcomes.push(await runVitest(project, args, join(reports, `${title}.json`), options));
  }
  return outcomes;
}

/** An image apart from the one that is in use; answers the variables that name it. */
async function imageOfAllLanguages(packagesDir = join(ROOT, ".pkgs-all")): Promise<Record<string, string>> {
  const env = { SANDBOX_PACKAGES_DIRECTORY: packagesDir };
  const instance = resolveInstance({ "data-dir": undefined, "port-offset": undefined }, env);
  await built("the image of all languages", () => buildImage(instance, "all", unseen));
  return env;
}

const unseen = () => undefined;

async function built(what: string, build: () => Promise<void>): Promise<void> {
  const begun = performance.now();
  await build();
  console.log(`\n== ${what}: there after ${((performance.now() - begun) / 1000).toFixed(1)} s`);
}
