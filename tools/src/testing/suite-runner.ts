/**
 * Runs suites in the order of the plan: stage by stage, the lanes of a stage side by side. A suite or build that fails is
 * reported as a failure, and the others go on.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BASE, buildImage } from "@svc/cli/install/image";
import { type Instance, ROOT, resolveInstance } from "@svc/cli/instance";
import type { ChaosSettings } from "./chaos.ts";
import { installTestClient } from "./client.ts";
import { buildTestImages } from "./images.ts";
import { MACHINE_IN_CI, type Part, passesOf, type Scope, type Suite, stagesOf } from "./plan.ts";
import { FUZZ, type Outcome, runCheck, runVitest, USUAL_CHECKS, type VitestProject } from "./suites.ts";
import { buildMachines, runMachines } from "./virtual-machine.ts";

export interface SuiteOptions {
  scope: Scope;
  /** Parts of the paths of test files; none: all files. */
  filters: readonly string[];
  vitestArguments: readonly string[];
  instance: Instance;
  /** Whether a failed test runs once more. */
  retry: boolean;
  chaos: ChaosSettings;
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
    for (const lanes of stagesOf(wanted, options.scope)) {
      const aside = lanes.length > 1;
      const each = lanes.map(async (lane) => {
        const told: Outcome[] = [];
        for (const part of lane) told.push(...(await runPart(part, { ...options, reports, aside })));
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

async function runPart(part: Part, context: Context): Promise<Outcome[]> {
  const begun = performance.now();
  try {
    return await outcomesOf(part, context);
  } catch (error) {
    const { message, advice = "" } = error as Error & { advice?: string };
    const seconds = (performance.now() - begun) / 1000;
    return [{ name: part, passed: 0, failed: 1, seconds, failures: [`${message}\n${advice}`], flaky: [] }];
  }
}

async function outcomesOf(part: Part, context: Context): Promise<Outcome[]> {
  const { aside, scope, filters, instance } = context;
  switch (part) {
    case "checks": {
      const outcomes: Outcome[] = [];
      for (const name of USUAL_CHECKS) outcomes.push(await runCheck(name, { aside }));
      return outcomes;
    }
    case "fuzz":
      return [await runCheck(FUZZ, { aside })];
    case "v2 build":
      return built(part, () => buildMachines("v2", instance, unseen));
    case "kvm build":
      return built(part, () => buildMachines("kvm", instance, unseen));
    case "compat build":
      return built(part, () => buildImage(allLanguages(context).instance, { choice: ALL }, unseen));
    case "client build":
      return built(part, () => installTestClient(unseen));
    case "images build":
      return built(part, () => buildTestImages(unseen));
    case "v2":
      return runMachines(part, scope === "ci" && filters.length === 0 ? MACHINE_IN_CI : filters, { aside });
    case "kvm":
      return runMachines(part, filters, { aside });
    case "compat":
      return runPasses(part, context, allLanguages(context).env);
    case "chaos":
      return runPasses(part, context, { ...context.chaos });
    default:
      return runPasses(part, context);
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

const ALL = { ...BASE, languages: ["all"] };

/** The instance with the image of all languages, which has a folder of its own. */
function allLanguages({ packagesDir = join(ROOT, ".pkgs-all") }: Context) {
  const env = { SANDBOX_PACKAGES_DIRECTORY: packagesDir };
  return { env, instance: resolveInstance({ "data-dir": undefined, "port-offset": undefined }, env) };
}

const unseen = () => undefined;

/** A build is not counted as a test; one that throws is a failure. */
async function built(part: Part, build: () => Promise<void>): Promise<Outcome[]> {
  const begun = performance.now();
  console.log(`\n== ${part}`);
  await build();
  console.log(`\n== ${part}: done (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
  return [];
}
