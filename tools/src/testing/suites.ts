/** The suites of ./svc test: checks that pass or fail as a whole, and the vitest projects with their counts. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { NODE } from "@svc/cli/components";
import { ROOT } from "@svc/cli/instance";
import { shown } from "@svc/cli/system/run";

export interface Outcome {
  name: string;
  passed: number;
  failed: number;
  seconds: number;
  /** One text per failed test: its file and name, and below that the start of what it said. */
  failures: readonly string[];
  /** The same of each test that failed and passed when it was repeated; it counts as passed. */
  flaky: readonly string[];
}

export const VITEST_PROJECTS = ["unit", "live", "e2e", "escape", "slow", "s3", "client", "compat"] as const;
export type VitestProject = (typeof VITEST_PROJECTS)[number];
/** A project that runs in a virtual machine only (virtual-machine.ts). */
export type GuestProject = "v2";

export const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");
const bin = (name: string) => join(ROOT, "node_modules/.bin", name);

const CHECKS = {
  "types (tsc)": [bin("tsc"), "--noEmit"],
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
/** Needs packages that nothing else does. */
export const FUZZ: CheckName = "jail (make fuzz)";
/** All others. */
export const USUAL_CHECKS = (Object.keys(CHECKS) as CheckName[]).filter((name) => name !== FUZZ);

/** `aside`: beside other suites; what it prints appears in one piece when it has ended. */
export async function runCheck(name: CheckName, { aside = false } = {}): Promise<Outcome> {
  const { code, seconds } = await visibly(name, CHECKS[name], { aside });
  const failures = code === 0 ? [] : [`${name}: exit code ${code}, see its output above`];
  return { name, passed: code === 0 ? 1 : 0, failed: failures.length, seconds, failures, flaky: [] };
}

export interface VitestOptions {
  title?: string;
  env?: Readonly<Record<string, string>>;
  aside?: boolean;
  /** Whether no test at all is no failure: files were picked, and another project may have them. */
  mayBeEmpty?: boolean;
}

/** A run that ends badly without a failed test, or that finds no test and must, counts as one failure. */
export async function runVitest(
  project: VitestProject | GuestProject,
  args: readonly string[],
  report: string,
  { title = project, env = {}, aside = false, mayBeEmpty = false }: VitestOptions = {},
): Promise<Outcome> {
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const filtered = mayBeEmpty ? ["--passWithNoTests"] : [];
  const command = [NODE, VITEST, "run", "--project", project, ...reporters, ...filtered, ...args];
  const name = `tests (${title})`;
  const { code, seconds } = await visibly(name, command, { env, aside });
  const { passed, failed, failures, flaky } = readReport(report);
  if (code !== 0 && failed === 0) failures.push(`${name}: exit code ${code}, see its output above`);
  return { name, passed, failed: Math.max(failed, failures.length), seconds, failures, flaky };
}

interface Report {
  numPassedTests: number;
  numFailedTests: number;
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
  }[];
}

const FAILURE_LINES = 12;

export interface Results {
  passed: number;
  failed: number;
  failures: string[];
  flaky: string[];
}

/** A report that is missing or broken counts nothing. */
export function readReport(path: string): Results {
  let report: Report;
  try {
    report = JSON.parse(readFileSync(path, "utf8")) as Report;
  } catch {
    return { passed: 0, failed: 0, failures: [], flaky: [] };
  }
  const failures: string[] = [];
  const flaky: string[] = [];
  for (const { name, status, message, assertionResults } of report.testResults) {
    const file = relative(ROOT, name);
    const told = (test: string, messages: readonly string[]) =>
      [`${file}${test}`, ...messages.join("\n").split("\n").slice(0, FAILURE_LINES)].join("\n  ");
    const failed = assertionResults.filter((test) => test.status === "failed");
    for (const test of failed) failures.push(told(` > ${test.fullName}`, test.failureMessages));
    // A test that passed when it was repeated keeps what it said before.
    for (const test of assertionResults)
      if (test.status === "passed" && test.failureMessages.length > 0)
        flaky.push(told(` > ${test.fullName}`, test.failureMessages));
    // A file that fails as a whole (its import, a hook) says so itself.
    if (failed.length === 0 && status === "failed") failures.push(told("", [message]));
  }
  return { passed: report.numPassedTests, failed: report.numFailedTests, failures, flaky };
}

/** Runs a command and shows what it prints: as it comes, or in one piece when it has ended. */
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
