/** The checks of ./svc doctor as data: one function for each subject, which returns findings. Nothing is changed. */

import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { freemem, release, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Capacity, capacityOf, languagesOf, shortageOf } from "../capacity.ts";
import { SPARE_JAILS } from "../components.ts";
import { hasOwnRedis } from "../environment.ts";
import {
  type DebianPackage,
  installCommands,
  missingPackages,
  redisProgram,
  systemName,
} from "../install/packages.ts";
import { type Instance, listenHost, SERVICES } from "../instance.ts";
import type { Settings } from "../settings/sources.ts";
import { settingOf } from "../settings.ts";
import { sizedAnyway } from "../sizing.ts";
import { readState } from "../supervisor/state.ts";
import { svcLine } from "../svc-line.ts";
import { thisMachine } from "../system/memory.ts";
import { listenerOf, listenProblem, NO_ADDRESS } from "../system/ports.ts";
import { findProgram, isRoot } from "../system/root.ts";
import { shown } from "../system/run.ts";
import { running, users } from "./copy.ts";
import { address, secretFiles } from "./exposure.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";
import * as host from "./host.ts";
import { image } from "./image.ts";
import { jail } from "./jail.ts";
import { microvm } from "./microvm.ts";
import { settings } from "./settings.ts";

type Check = (instance: Instance, read: Settings) => Finding[] | Promise<Finding[]>;

const GIB = 2 ** 30;
/** Open files of each service, with room for many connections. */
const SERVICE_FILES = 1024;
const CLOCK_MS = 20;

export const CHECKS: readonly Check[] = [
  system,
  rights,
  clock,
  packages,
  node,
  redis,
  jail,
  hostSettings,
  image,
  microvm,
  settings,
  ports,
  dataFolder,
  (instance, { unreadable }) => [
    secretFiles(instance),
    ...(unreadable === undefined ? [address(process.env)] : []),
  ],
  resources,
  capacity,
  users,
  running,
];

function system(): Finding[] {
  return [host.kernel({ name: systemName(), release: release(), architecture: process.arch })];
}

function rights(): Finding[] {
  return [host.rights({ isRoot: isRoot(), hasSudo: findProgram("sudo") !== undefined })];
}

async function clock(instance: Instance): Promise<Finding[]> {
  const folder = temporaryFolder(instance);
  try {
    const [beforeMs, started] = [Date.now(), performance.now()];
    const file = join(folder, "now");
    writeFileSync(file, "");
    const fileMs = statSync(file).mtimeMs;
    await delay(CLOCK_MS);
    return [host.clock({ beforeMs, fileMs, tookMs: performance.now() - started, afterMs: Date.now() })];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function packages(): Finding[] {
  return [debianFinding(missingPackages("run"))];
}

export function debianFinding(missing: readonly DebianPackage[]): Finding {
  if (missing.length === 0) return ok("packages", "all installed");
  const commands = installCommands(missing).map(shown).join(" && ");
  const names = missing.map(({ name }) => name).join(", ");
  return fail("packages", `missing: ${names}`, `${svcLine("up")} installs them, or: ${commands}`);
}

function node(): Finding[] {
  return [ok("node", `${process.version} of node_modules`)];
}

function redis(): Finding[] {
  if (hasOwnRedis(process.env)) return [ok("redis", "set by the environment")];
  const program = redisProgram();
  if (program === undefined) return [host.redis(undefined)];
  const { stdout } = spawnSync(program, ["--version"], { argv0: "redis-server", encoding: "utf8" });
  return [host.redis({ program, says: stdout ?? "" })];
}

function hostSettings(instance: Instance): Finding[] {
  const { settings } = sizedAnyway(process.env, thisMachine(), languagesOf(instance));
  const active = settingOf("SANDBOX_MAX_CONCURRENT_JOBS", settings) + SPARE_JAILS;
  return [
    host.namespaceCounts(textOf, active + settingOf("SANDBOX_MAX_PAUSED", process.env)),
    host.appArmor(
      textOf("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
      textOf("/proc/self/attr/apparmor/current"),
    ),
    host.openFiles(textOf("/proc/self/limits"), {
      needed: SERVICE_FILES,
      processFiles: settingOf("SANDBOX_MAX_OPEN_FILES", process.env),
    }),
    host.processNumbers(
      textOf("/proc/sys/kernel/pid_max"),
      textOf("/proc/sys/kernel/threads-max"),
      active * settingOf("SANDBOX_MAX_PROCESS_COUNT", process.env),
    ),
    host.procMount(textOf("/proc/self/mountinfo")),
    host.fileNumbers(
      textOf("/proc/sys/fs/file-max"),
      active *
        settingOf("SANDBOX_MAX_PROCESS_COUNT", process.env) *
        settingOf("SANDBOX_MAX_OPEN_FILES", process.env),
    ),
    host.corePattern(textOf("/proc/sys/kernel/core_pattern")),
    host.speculation(textOf("/sys/devices/system/cpu/smt/active"), vulnerabilities()),
  ];
}

const VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities";

function vulnerabilities(): Record<string, string> {
  const names = existsSync(VULNERABILITIES) ? readdirSync(VULNERABILITIES) : [];
  return Object.fromEntries(names.map((name) => [name, textOf(join(VULNERABILITIES, name)) ?? ""]));
}

/** Whether the memory of all slots fits. */
function capacity(instance: Instance): Finding[] {
  if (!existsSync(join(instance.image, "runtimes.json"))) return [];
  return [capacityFinding(capacityOf(thisMachine(), process.env, languagesOf(instance)))];
}

export function capacityFinding(found: Capacity): Finding {
  const shortage = shortageOf(found);
  const each = `${found.wanted} programs at once, ${gib(found.slotBytes)} each${found.inMicrovms ? " with its microVM" : " at most"}`;
  if (shortage === undefined)
    return ok("capacity", `${each}, ${gib(found.jailsBytes)} for ${found.inMicrovms ? "microVMs" : "jails"}`);
  const lowered = !found.isSet && found.jobs > 0;
  return lowered
    ? warn("capacity", `${shortage.message}; ./svc up takes ${found.jobs}`, shortage.advice)
    : fail("capacity", shortage.message, shortage.advice);
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

async function ports(instance: Instance): Promise<Finding[]> {
  const ours = readState(instance.runDir);
  if (ours !== undefined) return [ok("ports", `in use by the running copy (${ours.url})`)];
  const findings: Finding[] = [];
  for (const service of SERVICES) {
    const port = instance.ports[service];
    const address = listenHost(service, process.env);
    const problem = await listenProblem(address, port);
    if (problem === undefined) continue;
    findings.push(
      problem === "EADDRINUSE"
        ? fail(
            "ports",
            `${port} (${service}) is taken by ${listenerOf(port) ?? "another process"}`,
            "Free it, or use --port-offset N.",
          )
        : fail("ports", `the ${service} cannot listen on ${address} (${problem})`, NO_ADDRESS),
    );
  }
  return findings.length > 0
    ? findings
    : [ok("ports", SERVICES.map((service) => instance.ports[service]).join(", "))];
}

/** Tries to write, because some file systems (/proc, /sys) report a permission that they then refuse. */
function dataFolder(instance: Instance): Finding[] {
  const folder = existingParent(instance.dataDir);
  try {
    rmdirSync(mkdtempSync(join(folder, PREFIX)));
    return [ok("data folder", instance.dataDir)];
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EACCES" && !isRoot())
      return [warn("data folder", "can only be tried by root", "Run: sudo ./svc doctor")];
    return [
      fail(
        "data folder",
        `nothing can be written in ${folder} (${code ?? message})`,
        "Choose another one: --data-dir DIR or SVC_DATA_DIR.",
      ),
    ];
  }
}

function resources(instance: Instance): Finding[] {
  const { bavail, bsize, files, ffree } = statfsSync(existingParent(instance.dataDir));
  const isBuilt = existsSync(join(instance.image, "runtimes.json"));
  return [
    host.disk(bavail * bsize, isBuilt),
    host.inodes({ total: files, free: ffree }, isBuilt),
    host.memory(availableMemory()),
  ];
}

/** The nearest existing path: the given one or one of its parents. It may be a file; then using it shows what is wrong. */
function existingParent(path: string): string {
  return existsSync(path) ? path : existingParent(dirname(path));
}

const PREFIX = ".svc-doctor-";

/** Uses the file system of the data folder, or the system's temporary folder when nothing can be made there. */
function temporaryFolder(instance: Instance): string {
  try {
    return mkdtempSync(join(existingParent(instance.dataDir), PREFIX));
  } catch {
    return mkdtempSync(join(tmpdir(), PREFIX));
  }
}

function availableMemory(): number {
  const match = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"));
  return match === null ? freemem() : Number(match[1]) * 1024;
}

function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
