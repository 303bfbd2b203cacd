/**
 * Describes the processes of a local copy as data: the command and user of each process, what it waits for at the start, and
 * the stop order. Every process dies with the supervisor: setpriv sets PR_SET_PDEATHSIG and then becomes the program.
 */

import { existsSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Component as ComponentType } from "@svc/service-kit/config/types";
import { VARIABLES } from "@svc/service-kit/config/variables";
import { memoryOfJails, processesOfJails } from "./capacity.ts";
import { componentEnvironment, hasOwnRedis } from "./environment.ts";
import { redisProgram } from "./install/packages.ts";
import { addressOf, type Instance, ROOT } from "./instance.ts";
import { httpAnswers, redisAnswers, socketExists } from "./probes.ts";
import { Problem } from "./problem.ts";
import type { Secrets } from "./secrets.ts";
import type { View } from "./supervisor/view.ts";
import { svcLine } from "./svc-line.ts";
import { totalMemory } from "./system/memory.ts";
import {
  type ComponentName,
  componentsIn,
  logsOf,
  runsIn,
  type ServiceProcess,
  serviceProcesses,
  usesMicrovms,
} from "./topology.ts";
import { confined, isUnprivileged, userOf } from "./users.ts";
import { type Version, versionOf } from "./version.ts";
import { zygotesOf } from "./zygotes.ts";

export interface Component {
  name: ComponentName;
  command: readonly string[];
  env: Record<string, string>;
  /** Returns undefined when the component takes requests, otherwise what is missing. It is called often and never throws. */
  probe: () => Promise<string | undefined>;
  /** Components that must answer before this one starts for the first time. */
  after: readonly ComponentName[];
  /**
   * The oom_score_adj: when memory runs short, the kernel kills processes with a higher score first. Jails have the highest.
   */
  oomScore: number;
}

/** For components that no run can do without. Programs are killed first, then the other components. */
const LAST_TO_GO = -500;
const BEFORE_THEM = 0;

/** The stop order: first to last; the components on one line stop together. A component outlives those that need it. */
export const STOP_ORDER: readonly (readonly ComponentName[])[] = [
  ["api", "combined"],
  ["worker"],
  ["runner", "launcher"],
  ["egress-gateway", "tool-call-server", "file-server"],
  ["jaild"],
  ["redis"],
];

/** The route that answers while a component is alive. */
export const HEALTH: Record<ComponentType, string> = {
  api: "/v1/health",
  worker: "/health",
  runner: "/health",
  launcher: "/health",
  "file-server": "/health",
  "tool-call-server": "/health",
  "egress-gateway": "/health",
};

export const NODE = join(ROOT, `node_modules/node-linux-${process.arch}/bin/node`);
/**
 * The first option limits each half of V8's young generation, in MiB. By default it grows to 16 with work, and what it frees
 * stays with the process until the next collection of the whole heap. The second is the number of threads that help V8. The
 * default of four takes processor time from requests during a collection. An empty list leaves V8 at its defaults.
 */
export const NODE_OPTIONS = ["--max-semi-space-size=4", "--v8-pool-size=2"];
/** Beside the packages that they contain, so that both are removed together. */
export const BUNDLES = join(ROOT, "node_modules/.cache/components");
export const JAILD = join(ROOT, "jail/build/jaild");
export const JAILD_ENVIRONMENT = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };

export interface Setting {
  instance: Instance;
  secrets: Secrets;
  caller: Readonly<Record<string, string | undefined>>;
  /** The file system view of components that have users of their own. Undefined: they run as the supervisor's user. */
  view: View | undefined;
  /** Whether the API process inherits a socket that is bound to its address. Its descriptor comes after the descriptors of the logs. */
  isApiHeld?: boolean;
  /** The control group for jaild (system/jails-group.ts). */
  jailsGroup?: string | undefined;
}

export function componentsOf(setting: Setting): Component[] {
  const services = serviceProcesses(setting.caller).map((name) => serviceProcess(name, setting));
  const redis = hasOwnRedis(setting.caller) ? [] : [redisServer(setting)];
  const jails = usesMicrovms(setting.caller) ? [] : [jaild(setting)];
  return [...redis, ...jails, ...services];
}

function neededBy(name: ServiceProcess, caller: Setting["caller"]): ComponentName[] {
  if (name === "runner") return ["jaild"];
  return name === "launcher" || hasOwnRedis(caller) ? [] : ["redis"];
}

/** What a process is started from; ./install/bundles.ts makes it. */
export function bundleOf(name: ServiceProcess): string {
  return join(BUNDLES, `${name}.mjs`);
}

/** Returns the words that run a program as a process of the component: with the component's user and in its view. */
function as(name: ComponentName, signal: "KILL" | "TERM", { instance, view }: Setting): string[] {
  if (view === undefined || !isUnprivileged(name)) return confined(signal, undefined);
  return [...view.enter, ...confined(signal, userOf(name, instance))];
}

/** Names the log descriptor of each component in a process that runs several. Child opens these descriptors after the first three. */
function logArguments(name: ServiceProcess): string[] {
  const [, ...logs] = logsOf(name);
  return logs.map((component, at) => `${component}=${3 + at}`);
}

/** Names the descriptor that is bound to the API's address. The API listens on it instead of opening its own socket. */
function listenArgument(name: ServiceProcess, { isApiHeld = false }: Setting): string[] {
  return isApiHeld && runsIn(name, "api") ? [`listen=${2 + logsOf(name).length}`] : [];
}

/** What `svc_build_info` reports in addition to the version. */
const buildOf = ({ commit }: Version) => (commit === undefined ? {} : { SVC_BUILD_COMMIT: commit });

function serviceProcess(name: ServiceProcess, setting: Setting): Component {
  const { instance, secrets, caller } = setting;
  const healthOf = (service: ComponentType) => `${addressOf(service, instance)}${HEALTH[service]}`;
  const needs = neededBy(name, caller);
  return {
    name,
    command: [
      ...as(name, "KILL", setting),
      ...[NODE, ...NODE_OPTIONS, bundleOf(name)],
      ...logArguments(name),
      ...listenArgument(name, setting),
    ],
    env: { ...buildOf(versionOf()), ...componentEnvironment(name, instance, secrets, caller) },
    probe: async () => {
      const answers = await Promise.all(componentsIn(name).map((service) => httpAnswers(healthOf(service))));
      return answers.find((answer) => answer !== undefined);
    },
    after: needs,
    oomScore: BEFORE_THEM,
  };
}

/**
 * Jails in addition to the runner's slots. While a used jail is replaced, the next run finds a ready one, and a health check
 * never waits for programs.
 */
export const SPARE_JAILS = 2;
/** How long files may take; files of a program that has ended may first have to wait for the answers to its last calls. */
const FETCH_MS = 120_000;
/** How much longer jaild waits for a job than staging may take. With this margin the runner reports the timeout first. */
const STAGE_MS = 30_000;
/** The maximum of jaild's own timeouts. */
const MAX_MS = 3_600_000;

/** jaild's limit (SLOTS_MAX). */
const MOST_SLOTS = 1024;

/** The command line of jaild, its program first. */
export function jaildCommand(setting: Omit<Setting, "secrets">): string[] {
  const { instance, caller, view, jailsGroup } = setting;
  const size = (
    name:
      | "SANDBOX_WORKSPACE_MAX_BYTES"
      | "SANDBOX_WORKSPACE_MAX_FILES"
      | "SANDBOX_TMP_MAX_BYTES"
      | "SANDBOX_MAX_CONCURRENT_JOBS"
      | "SANDBOX_MAX_PAUSED"
      | "TOOL_CALL_REQUEST_TIMEOUT"
      | "JOB_PRIME_ALLOWANCE_MS",
  ) => {
    const variable = VARIABLES[name];
    return caller[name] ? variable.parse(caller[name]) : variable.fallback;
  };
  const zygotes = zygotesOf(instance, caller);
  const ready = size("SANDBOX_MAX_CONCURRENT_JOBS") + SPARE_JAILS + zygotes.waiting;
  const slots = ready + size("SANDBOX_MAX_PAUSED");
  if (slots > MOST_SLOTS)
    throw new Problem(
      `running, warm and paused programs would need ${slots} jails, and there can be ${MOST_SLOTS}`,
      "Lower SANDBOX_WARM_POOL, SANDBOX_MAX_CONCURRENT_JOBS or SANDBOX_MAX_PAUSED (docs/configuration.md).",
    );
  const options: Record<string, string> = {
    root: rootImage(instance),
    socket: instance.jailSocket,
    "socket-uid": String(view === undefined ? 0 : userOf("runner", instance).uid),
    "socket-mode": "0600",
    slots: String(slots),
    ready: String(ready),
    "tool-directory": instance.toolDirectory,
    "stage-timeout-ms": String(Math.min(size("JOB_PRIME_ALLOWANCE_MS") + STAGE_MS, MAX_MS)),
    "fetch-timeout-ms": String(Math.min(size("TOOL_CALL_REQUEST_TIMEOUT") + FETCH_MS, MAX_MS)),
    "uid-base": String(instance.jobUidBase),
    "gid-base": String(instance.jobGidBase),
    cgroup: instance.cgroup,
    ...(jailsGroup === undefined ? {} : { "cgroup-base": jailsGroup }),
    "memory-bytes": String(memoryOfJails(totalMemory())),
    pids: String(processesOfJails(slots, caller)),
    "workspace-bytes": String(size("SANDBOX_WORKSPACE_MAX_BYTES")),
    "workspace-inodes": String(size("SANDBOX_WORKSPACE_MAX_FILES")),
    "tmp-bytes": String(size("SANDBOX_TMP_MAX_BYTES")),
  };
  const list = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  return [JAILD, ...list, ...zygotes.options];
}

function jaild(setting: Setting): Component {
  return {
    name: "jaild",
    command: [...as("jaild", "TERM", setting), ...jaildCommand(setting)],
    env: JAILD_ENVIRONMENT,
    probe: () => socketExists(setting.instance.jailSocket),
    after: [],
    oomScore: LAST_TO_GO,
  };
}

/** The path without symbolic links, so that a running copy keeps the image that it started with. */
export function imageFolder({ image }: Pick<Instance, "image">): string {
  if (!existsSync(join(image, "rootfs")))
    throw new Problem(`the root image ${image} is not built`, `Run: ${svcLine("up")}`);
  return realpathSync(image);
}

export const rootImage = (instance: Pick<Instance, "image">) => join(imageFolder(instance), "rootfs");

/** Calls the program through a symbolic link named redis-server, because the name decides what the program does. */
function redisServer(setting: Setting): Component {
  const { instance } = setting;
  const program = redisProgram();
  if (program === undefined) throw new Problem("no Redis server is installed", `Run: ${svcLine("doctor")}`);
  const called = join(instance.runDir, "redis-server");
  rmSync(called, { force: true });
  symlinkSync(program, called);
  const options: Record<string, string> = {
    port: "0",
    unixsocket: instance.redisSocket,
    unixsocketperm: "770",
    dir: join(instance.dataDir, "redis"),
    appendonly: "yes",
    appendfsync: "everysec",
    save: "",
    "maxmemory-policy": "noeviction",
    daemonize: "no",
  };
  const list = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  return {
    name: "redis",
    command: [...as("redis", "TERM", setting), called, ...list],
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" },
    probe: () => redisAnswers(instance.redisSocket),
    after: [],
    oomScore: LAST_TO_GO,
  };
}
