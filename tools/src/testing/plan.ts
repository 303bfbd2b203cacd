/**
 * What `./svc test` runs, as data: the suites of each scope, the suites that run side by side, and the files that only a
 * larger scope has. `ci` has every kind of guarantee at least once; `all` leaves out nothing.
 */
import type { MachineProject, VitestProject } from "./suites.ts";

/** `usual`: without a choice; `ci`: what .ci/run asks for; `all`: everything. */
export type Scope = "usual" | "ci" | "all";
export type Suite = "checks" | "fuzz" | MachineProject | VitestProject;
/** Builds for single suites come before the tests: builds mount things, and tests look at the host's mounts. */
export const BUILDS = {
  "v2 build": ["v2"],
  "kvm build": ["kvm"],
  "compat build": ["compat"],
  "client build": ["client", "images", "microvm"],
  "images build": ["images"],
} as const satisfies Record<string, readonly Suite[]>;
export type Build = keyof typeof BUILDS;
export type Part = Suite | Build;

type Stages = readonly (readonly (readonly Part[])[])[];

/**
 * Stages run one after the other, the lanes of a stage side by side, the parts of a lane in turn. Two lanes keep two
 * processors busy; more would only delay each other. In CI both lanes of the second stage take about as long. The last
 * stage counts everything that the host holds and measures how soon bystanders are served, so nothing runs beside it.
 */
export const STAGES: Stages = [
  [["checks"], ["unit"], ["v2 build", "kvm build", "compat build", "client build", "images build"]],
  [
    ["e2e", "fuzz", "chaos", "kubernetes", "s3", "compat", "client"],
    ["live", "v2", "images", "microvm", "kvm"],
  ],
  [["escape", "slow"]],
];

/** Without a choice: live and end-to-end tests wait part of their time, and the others use it. */
const USUAL_STAGES: Stages = [
  [["checks"], ["unit"]],
  [["live"], ["e2e"]],
];

const USUAL: readonly Suite[] = ["checks", "unit", "live", "e2e"];

const isBuild = (part: Part): part is Build => part in BUILDS;

/** The lanes of each stage with the wanted suites and their builds, without empty lanes. */
export function stagesOf(wanted: (suite: Suite) => boolean, scope: Scope): Part[][][] {
  const isWanted = (part: Part) => (isBuild(part) ? BUILDS[part].some(wanted) : wanted(part));
  const stages = scope === "usual" ? USUAL_STAGES : STAGES;
  return stages.map((lanes) => lanes.map((lane) => lane.filter(isWanted)).filter((lane) => lane.length > 0));
}

/** The build of the images takes a quarter of an hour and needs podman; guests boot in minutes and need QEMU. */
const SUITES_ONLY_IN_ALL: readonly Suite[] = ["images", "microvm", "kvm"];

export function isIn(scope: Scope, suite: Suite): boolean {
  if (scope === "usual") return USUAL.includes(suite);
  return scope === "all" || !SUITES_ONLY_IN_ALL.includes(suite);
}

/** One pass over a project. */
export interface Pass {
  title: string;
  /** Settings of the whole systems that it starts, over the environment's. */
  env: Readonly<Record<string, string>>;
  /** Only these files; undefined: all of the project. */
  files?: readonly string[];
  exclude: readonly string[];
}

/** These suites run once with warm starts and once without, or as SANDBOX_WARM_START says where it is set. */
const IN_BOTH_WAYS: readonly Suite[] = ["escape", "slow", "compat"];

/** Files whose tests do not depend on how programs start. */
const SAME_COLD_AND_WARM = [
  "tests/escape/docs/*",
  "tests/escape/requests/*",
  "tests/escape/network/drip.slow.test.ts",
  "tests/escape/outputs/swap.slow.test.ts",
  "tests/escape/tenants/five-others.test.ts",
  "tests/slow/sessions-rounds.slow.test.ts",
  "tests/slow/streams.slow.test.ts",
  "tests/compat/compilation.test.ts",
  "tests/compat/groups.test.ts",
  "tests/compat/sessions.test.ts",
  "tests/compat/toolchains.test.ts",
];

/** Without warm starts CI runs only these: where a process comes from, what it inherits and how it ends. */
const COLD_IN_CI: readonly string[] = [
  "tests/escape/files/descriptors.test.ts",
  "tests/escape/files/proc.test.ts",
  "tests/escape/life-cycle/survivors.test.ts",
  "tests/escape/resources/memory.test.ts",
  "tests/escape/syscalls/",
  "tests/escape/tenants/leftovers.test.ts",
  "tests/escape/tenants/secrets.test.ts",
  "tests/escape/warm-start/",
];

/** Files that only `all` has. Each comment names the tests that show a smaller piece of the same in CI. */
const ONLY_IN_ALL: readonly string[] = [
  // Hundreds of programs in pre-started interpreters: packages/jail-client/test/live/prestarted.test.ts, warm-programs.test.ts.
  "packages/jail-client/test/live/prestarted-programs.test.ts",
  // Many and generated programs with tools: tests/e2e/programmatic-python.test.ts, programmatic-bash.test.ts.
  "tests/e2e/programmatic-generated.test.ts",
  "tests/e2e/programmatic-many.test.ts",
  // 5,000 mixed executions: 200 of them in tests/e2e/leaks.test.ts.
  "tests/escape/resources/mixture.slow.test.ts",
  // A minute of random system calls: seconds of them in packages/jail-client/test/live/syscalls.test.ts.
  "tests/escape/syscalls/storm.slow.test.ts",
  // An image with all package groups, which is several gigabytes: a folder of packages in tests/e2e/packages.test.ts.
  "tests/compat/groups.test.ts",
  // Every component is replaced by that of another version, which is built before: tests/e2e/restart.test.ts.
  "tests/e2e/upgrade.test.ts",
  // Two replicas of each component are replaced under load, two minutes: tests/e2e/restart.test.ts.
  "tests/e2e/rolling-update.test.ts",
];

/** Files that only `ci` and `all` have. Each comment names the tests that show a smaller piece of the same without a choice. */
const NOT_USUAL: readonly string[] = [
  // Hundreds of programs, cold and warm: packages/jail-client/test/live/warm-mode.test.ts.
  "packages/jail-client/test/live/warm-programs.test.ts",
  // Each repeat of a resume: tests/e2e/programmatic-python.test.ts.
  "tests/e2e/programmatic-repeated.test.ts",
  // Every call of jaild fails in turn: services/runner/test/live/faults.test.ts.
  "packages/jail-client/test/live/faults.test.ts",
  "tests/e2e/jail-faults.test.ts",
  // What becomes of a fork server and of a paused program, one system for each case: packages/jail-client/test/live/warm-mode.test.ts,
  // services/runner/test/live/programs.test.ts, tests/e2e/programmatic-python.test.ts.
  "packages/jail-client/test/live/zygotes.test.ts",
  "services/runner/test/live/pauses.test.ts",
  // Stores and servers that fail and come back: packages/job-queue/test/live/run.test.ts, tests/e2e/lifecycle.test.ts.
  "packages/job-queue/test/live/losses.test.ts",
  "services/api/test/live/files/faults.test.ts",
  "services/file-server/test/live/faults.test.ts",
  "services/tool-call-server/test/live/durability.test.ts",
  // Each route's window, each kind of recorded call: tests/e2e/rate-limits.test.ts,
  // services/egress-gateway/test/live/tool-calls.test.ts.
  "services/api/test/live/limits/routes.test.ts",
  "services/egress-gateway/test/live/recorded-calls.test.ts",
  // Components are killed under load: tests/e2e/lifecycle.test.ts, tool-programs.test.ts.
  "tests/e2e/chaos.test.ts",
  "tests/e2e/health.test.ts",
  "tests/e2e/start-order.test.ts",
  "tests/e2e/programmatic-kills.test.ts",
  // A machine that is cut off: tests/e2e/sessions-fleet.test.ts.
  "tests/e2e/fleet.test.ts",
  // The same in the middle of a session's run, and storage and Redis that fail: tests/e2e/sessions.test.ts.
  "tests/e2e/sessions-kills.test.ts",
  "tests/e2e/sessions-faults.test.ts",
  // Prometheus, alerts, slow stages and gauges after kills: tests/e2e/metrics.test.ts.
  "tests/e2e/monitoring.test.ts",
  "tests/e2e/slow-stages.test.ts",
  "tests/e2e/alerts.test.ts",
  // What hundreds of executions leave and hold: every file looks at what its own system has left.
  "tests/e2e/leaks.test.ts",
  "tests/e2e/idle-memory.test.ts",
  "tests/e2e/transfers.test.ts",
  // Each method of the Python client, by proxies of each kind: tests/e2e/python-client-page.test.ts.
  "tests/e2e/python-client.test.ts",
  // Each limit to the byte: tests/e2e/limits.test.ts.
  "tests/e2e/limits-exact.test.ts",
  // Images of their own: which image is whose in runtimes/test/live/images.test.ts.
  "tests/e2e/image.test.ts",
  "tests/e2e/packages.test.ts",
  // A reader that takes nothing is given up after a minute: services/api/test/live/streams/event-stream.test.ts.
  "tests/e2e/streams-unread.test.ts",
  // Every symptom of the troubleshooting page, and every code in the logs: tests/e2e/modes.test.ts, doctor.test.ts, logs.test.ts.
  "tests/e2e/troubleshooting/*",
  "tests/e2e/request-ids.test.ts",
  // Rights of each component's user: tests/e2e/privileges.test.ts, runner-user.test.ts.
  "tests/e2e/component-users.test.ts",
];

/** All files that a scope leaves out. */
export const LEFT_OUT: readonly string[] = [...SAME_COLD_AND_WARM, ...ONLY_IN_ALL, ...NOT_USUAL];

/**
 * The tests in machines with cgroup v2 that CI runs: everything that control groups decide, a whole system, and the
 * service. The rest takes a core for half an hour under emulation, and the same files run beside it with version 1.
 */
export const MACHINE_IN_CI: readonly string[] = [
  "group-limits",
  "lifecycle",
  "pause",
  "groups",
  "system",
  "service",
];

/** End-to-end tests run with five components in one process. These files also run with a process for each. */
const IN_BOTH_TOPOLOGIES: readonly string[] = [
  "exec-contract",
  "lifecycle",
  "programmatic-python",
  "restart",
  "secrets",
  "uploads",
].map((name) => `tests/e2e/${name}.test.ts`);

/** Variables of the environment of `./svc test` that decide how often a project runs. */
export interface Chosen {
  SANDBOX_WARM_START?: string | undefined;
  SVC_TOPOLOGY?: string | undefined;
}

/** How long a machine is cut off in tests/e2e/fleet.test.ts, where that is longer than usual. */
const LONG_CUT = { FLEET_CUT_SECONDS: "30" };

/** The passes over a project in a scope. */
export function passesOf(project: VitestProject, scope: Scope, chosen: Chosen): Pass[] {
  const exclude = { usual: [...NOT_USUAL, ...ONLY_IN_ALL], ci: ONLY_IN_ALL, all: [] }[scope];
  if (IN_BOTH_WAYS.includes(project))
    return bothWays(project, scope, [...exclude], chosen.SANDBOX_WARM_START);
  const once: Pass = { title: project, env: project === "e2e" && scope === "all" ? LONG_CUT : {}, exclude };
  if (project !== "e2e" || scope === "usual" || chosen.SVC_TOPOLOGY !== undefined) return [once];
  const env = { SVC_TOPOLOGY: "separate" };
  return [once, { title: "e2e, a process for each component", env, exclude, files: IN_BOTH_TOPOLOGIES }];
}

function bothWays(
  project: VitestProject,
  scope: Scope,
  exclude: string[],
  start: string | undefined,
): Pass[] {
  const excludeCold = [...exclude, ...SAME_COLD_AND_WARM];
  if (start !== undefined)
    return [{ title: project, env: {}, exclude: start === "off" ? excludeCold : exclude }];
  const warm: Pass = { title: `${project}, warm`, env: { SANDBOX_WARM_START: "on" }, exclude };
  const cold: Pass = {
    title: `${project}, cold`,
    env: { SANDBOX_WARM_START: "off" },
    exclude: excludeCold,
  };
  if (scope !== "ci") return [warm, cold];
  return project === "escape" ? [warm, { ...cold, files: COLD_IN_CI }] : [warm];
}
