/** The suites of ./svc test: checks that pass or fail as a whole, and the vitest projects with their counts. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { NODE } from "@svc/cli/components";
import { ROOT } from "@svc/cli/instance";
import { shown } from "@svc/cli/system/run";
import type { Results } from "./reporter.ts";

export interface Outcome {
  name: string;
  passed: number;
  failed: number;
  seconds: number;
  /** One text per failed test: its file and name, and below that the start of what it said. */
  failures: readonly string[];
  /** The same for each test that failed and passed when it was repeated; it counts as passed. */
  flaky: readonly string[];
}

export const VITEST_PROJECTS = [
  "unit",
  "live",
  "e2e",
  "escape",
  "slow",
  "s3",
  "client",
  "kubernetes",
  "images",
  "microvm",
  "compat",
  "chaos",
] as const;
export type VitestProject = (typeof VITEST_PROJECTS)[number];
/** Projects that run in virtual machines only (./machines.ts). */
export const MACHINE_PROJECTS = ["v2", "kvm"] as const;
export type MachineProject = (typeof MACHINE_PROJECTS)[number];

export const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");
const REPORTER = join(import.meta.dirname, "reporter.ts");
const bin = (name: string) => join(ROOT, "node_modules/.bin", name);

const CHECKS = {
  "types (tsc)": ["bash", "-c", `"${bin("tsc")}" --noEmit && "${bin("tsc")}" --noEmit -p console`],
  "lint (biome)": [bin("biome"), "ci", "--error-on-warnings", "."],
  "shell (shellcheck)": [
    "bash",
    "-c",
    'git ls-files -z | xargs -0 grep -lZE "^#!.*\\b(ba)?sh$" | xargs -0 shellcheck --external-sources',
  ],
  "jail (make check)": ["make", "--no-print-directory", "-C", "jail", "check"],
  "jail (make fuzz)": ["make", "--silent", "-C", "jail", "fuzz"],
} as const satisfies Record<string, readonly string[]>;

export type CheckName = keyof typeof CHECKS;
/** The check that needs packages which nothing else needs. */
export const FUZZ: CheckName = "jail (make fuzz)";
/** All other checks. */
export const USUAL_CHECKS = (Object.keys(CHECKS) as CheckName[]).filter((name) => name !== FUZZ);

/** `aside`: it runs beside other suites, and its output appears in one piece when it has ended. */
export async function runCheck(name: CheckName, { aside = false } = {}): Promise<Outcome> {
  const { code, seconds } = await visibly(name, CHECKS[name], { aside });
  const failures = code === 0 ? [] : [`${name}: exit code ${code}, see its output above`];
  return { name, passed: code === 0 ? 1 : 0, failed: failures.length, seconds, failures, flaky: [] };
}

export interface VitestOptions {
  title?: string;
  env?: Readonly<Record<string, string>>;
  aside?: boolean;
  /** Whether a run without any test passes: files were picked, and another project may have them. */
  mayBeEmpty?: boolean;
}

/**
 * Failures outside of tests (a file as a whole, an unhandled error, a run that ends early) count as failures, unless a test
 * left them behind that passed when it was repeated.
 */
export async function runVitest(
  project: VitestProject | MachineProject,
  args: readonly string[],
  report: string,
  { title = project, env = {}, aside = false, mayBeEmpty = false }: VitestOptions = {},
): Promise<Outcome> {
  const reporters = ["--reporter=default", `--reporter=${REPORTER}`];
  const filtered = mayBeEmpty ? ["--passWithNoTests"] : [];
  const command = [NODE, VITEST, "run", "--project", project, ...reporters, ...filtered, ...args];
  const name = `tests (${title})`;
  const { code, seconds } = await visibly(name, command, { env: { ...env, TEST_REPORT: report }, aside });
  const { passed, failures, flaky, leftBehind } = readResults(report);
  if (code !== 0 && failures.length + leftBehind === 0)
    failures.push(`${name}: exit code ${code}, see its output above`);
  return { name, passed, failed: failures.length, seconds, failures, flaky };
}

/** A report that is missing or broken counts nothing: the run ended early, and its exit code says so. */
function readResults(path: string): Results {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Results;
  } catch {
    return { passed: 0, failures: [], flaky: [], leftBehind: 0 };
  }
}

/** Runs a command and shows its output: as it comes, or in one piece when it has ended. */
export async function visibly(
  title: string,
  command: readonly string[],
  {
    env = {},
    aside = false,
    timeout,
  }: { env?: Readonly<Record<string, string>>; aside?: boolean; timeout?: number } = {},
): Promise<{ code: number; seconds: number }> {
  const heading = `\n== ${title}: ${shown(command.map((word) => word.replace(`${ROOT}/`, "")))}`;
  console.log(aside ? `\n== ${title}: beside others, its output follows` : heading);
  const start = performance.now();
  const printed: Buffer[] = [];
  const code = await new Promise<number>((resolve) => {
    const [file = "", ...args] = command;
    const out = aside ? "pipe" : "inherit";
    const child = spawn(file, args, {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ["ignore", out, out],
      timeout,
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk: Buffer) => void printed.push(chunk));
    child.once("error", () => resolve(127));
    child.once("close", (exit) => resolve(exit ?? 1));
  });
  if (aside) process.stdout.write(`${heading}\n${Buffer.concat(printed)}`);
  return { code, seconds: (performance.now() - start) / 1000 };
}
