/** The suites of ./svc test: checks that pass or fail as a whole, and the vitest projects with their counts. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { NODE } from "../components.ts";
import { ROOT } from "../instance.ts";
import { shown } from "../system/run.ts";

export interface Outcome {
  name: string;
  passed: number;
  failed: number;
  seconds: number;
  /** One text per failed test: its file and name, and below that the start of what it said. */
  failures: readonly string[];
}

export const VITEST_PROJECTS = ["unit", "live", "e2e", "escape", "slow", "s3", "client", "compat"] as const;
export type VitestProject = (typeof VITEST_PROJECTS)[number];
/**
 * How Python programs start in the whole systems of some projects: each of these runs once in either way, or as
 * SANDBOX_WARM_START says where it is set.
 */
const STARTS = ["warm", "cold"] as const;
const IN_BOTH_WAYS: readonly VitestProject[] = ["escape", "slow", "compat"];
const WARM_START = "SANDBOX_WARM_START";
/** A project that runs in a virtual machine only (virtual-machine.ts). */
export type GuestProject = "v2";
/** What runs without a choice: the other projects take minutes or need packages that nothing else does. */
export const USUAL_PROJECTS: readonly VitestProject[] = ["unit", "live", "e2e", "escape"];

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
/** What runs without a choice. */
export const USUAL_CHECKS = (Object.keys(CHECKS) as CheckName[]).filter((name) => name !== FUZZ);

export async function runCheck(name: CheckName): Promise<Outcome> {
  const { code, seconds } = await visibly(name, CHECKS[name]);
  const failures = code === 0 ? [] : [`${name}: exit code ${code}, see its output above`];
  return { name, passed: code === 0 ? 1 : 0, failed: failures.length, seconds, failures };
}

/** A run that ends badly without a failed test, or that finds no test, counts as one failure. */
export async function runVitest(
  project: VitestProject | GuestProject,
  args: readonly string[],
  report: string,
  { title = project, env = {} }: { title?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<Outcome> {
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const filtered = args.length > 0 ? ["--passWithNoTests"] : [];
  const command = [
    NODE,
    join(ROOT, "node_modules/vitest/vitest.mjs"),
    "run",
    "--project",
    project,
    ...reporters,
    ...filtered,
    ...args,
  ];
  const name = `tests (${title})`;
  const { code, seconds } = await visibly(name, command, env);
  const { passed, failed, failures } = readReport(report);
  if (code !== 0 && failed === 0) failures.push(`${name}: exit code ${code}, see its output above`);
  return { name, passed, failed: Math.max(failed, failures.length), seconds, failures };
}

/** What `runVitest` gets for each time that a project runs. */
export function timesOf(
  project: VitestProject,
  environment: Readonly<Record<string, string | undefined>>,
): { title: string; env: Record<string, string> }[] {
  if (!IN_BOTH_WAYS.includes(project) || environment[WARM_START] !== undefined)
    return [{ title: project, env: {} }];
  return STARTS.map((start) => ({
    title: `${project}, ${start}`,
    env: { [WARM_START]: start === "warm" ? "on" : "off" },
  }));
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

function readReport(path: string): { passed: number; failed: number; failures: string[] } {
  let report: Report;
  try {
    report = JSON.parse(readFileSync(path, "utf8")) as Report;
  } catch {
    return { passed: 0, failed: 0, failures: [] };
  }
  const failures = report.testResults.flatMap((file) => {
    const failed = file.assertionResults.filter(({ status }) => status === "failed");
    // A file that fails as a whole (its import, a hook) says so itself.
    const whole = failed.length === 0 && file.status === "failed" ? [["", file.message]] : [];
    const each = failed.map((test) => [` > ${test.fullName}`, test.failureMessages.join("\n")]);
    return [...each, ...whole].map(([name, message = ""]) =>
      [`${relative(ROOT, file.name)}${name}`, ...message.split("\n").slice(0, FAILURE_LINES)].join("\n  "),
    );
  });
  return { passed: report.numPassedTests, failed: report.numFailedTests, failures };
}

async function visibly(
  title: string,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number; seconds: number }> {
  console.log(`\n== ${title}: ${shown(command.map((word) => word.replace(`${ROOT}/`, "")))}`);
  const start = performance.now();
  const code = await new Promise<number>((resolve) => {
    const [file = "", ...args] = command;
    const child = spawn(file, args, {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ["ignore", "inherit", "inherit"],
    });
    child.once("error", () => resolve(127));
    child.once("close", (exit) => resolve(exit ?? 1));
  });
  return { code, seconds: (performance.now() - start) / 1000 };
}
