/**
 * What ./svc doctor looks at, as data: one function per subject, each answers findings. Nothing is changed.
 * `fail`: the service would be unsafe or could not run. `warn`: it runs, but somebody should know.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync, statfsSync } from "node:fs";
import { freemem, release } from "node:os";
import { dirname, join } from "node:path";
import { JAILD, redisProgram, rootImage } from "../components.ts";
import { installCommands, missingPackages, systemName } from "../install/packages.ts";
import { type Instance, SERVICES } from "../instance.ts";
import { componentHealth } from "../readiness.ts";
import { readState, type State } from "../supervisor/state.ts";
import { listenerOf, portIsFree } from "../system/ports.ts";
import { findProgram, isRoot } from "../system/root.ts";
import { shown } from "../system/run.ts";

export interface Finding {
  grade: "ok" | "warn" | "fail";
  subject: string;
  note: string;
  fix?: string;
}

type Check = (instance: Instance) => Finding[] | Promise<Finding[]>;

const ok = (subject: string, note: string): Finding => ({ grade: "ok", subject, note });
const fail = (subject: string, note: string, fix: string): Finding => ({ grade: "fail", subject, note, fix });
const warn = (subject: string, note: string, fix: string): Finding => ({ grade: "warn", subject, note, fix });

const GIB = 2 ** 30;
const MIN_DISK = 3 * GIB;
const MIN_MEMORY = 1.5 * GIB;
const MIN_KERNEL = [5, 12] as const;
const EARLIEST_CLOCK = Date.UTC(2025, 0, 1);

export const CHECKS: readonly Check[] = [
  system,
  rights,
  clock,
  packages,
  node,
  redis,
  jail,
  image,
  ports,
  dataFolder,
  resources,
  running,
];

function system(): Finding[] {
  if (process.platform !== "linux")
    return [fail("system", process.platform, "The jail needs Linux: use a Linux machine or VM.")];
  const note = `${systemName()}, kernel ${release()}, ${process.arch}`;
  const [major = 0, minor = 0] = release().split(".").map(Number);
  const [needMajor, needMinor] = MIN_KERNEL;
  const old = major < needMajor || (major === needMajor && minor < needMinor);
  return [
    old
      ? fail("system", note, `The jail needs kernel ${MIN_KERNEL.join(".")} or newer.`)
      : ok("system", note),
  ];
}

function rights(): Finding[] {
  if (isRoot()) return [ok("rights", "root")];
  if (findProgram("sudo") !== undefined) return [ok("rights", "through sudo")];
  return [
    fail("rights", "neither root nor sudo", "The jail is made by root: run ./svc as root, or install sudo."),
  ];
}

function clock(): Finding[] {
  const now = new Date();
  const note = now.toISOString();
  return [
    now.getTime() < EARLIEST_CLOCK
      ? fail("clock", note, "Set the clock: signed requests expire by it.")
      : ok("clock", note),
  ];
}

function packages(): Finding[] {
  const missing = missingPackages("run");
  if (missing.length === 0) return [ok("packages", "all installed")];
  const commands = installCommands(missing).map(shown).join(" && ");
  return [
    fail(
      "packages",
      `missing: ${missing.map(({ name }) => name).join(", ")}`,
      `./svc up installs them, or: ${commands}`,
    ),
  ];
}

function node(): Finding[] {
  return [ok("node", `${process.version} of node_modules`)];
}

const REDIS_MAJOR = 7;

function redis(): Finding[] {
  const program = redisProgram();
  if (process.env.REDIS_URL || process.env.REDIS_HOST) return [ok("redis", "set by the environment")];
  if (program === undefined) return [fail("redis", "not installed", "./svc up installs it.")];
  const { stdout } = spawnSync(program, ["--version"], { argv0: "redis-server", encoding: "utf8" });
  const version = /v=(\d+)\.[\d.]+/.exec(stdout ?? "");
  const note = `${version?.[0].slice(2) ?? "unknown version"} (${program})`;
  return [
    Number(version?.[1] ?? 0) >= REDIS_MAJOR
      ? ok("redis", note)
      : fail("redis", note, "Redis 7 or Valkey is needed."),
  ];
}

/** jaild tries every feature of the kernel itself and prints `ok|fail FEATURE FIX`. */
function jail(instance: Instance): Finding[] {
  if (!existsSync(JAILD)) return [warn("jail", "not built yet", "./svc up builds it.")];
  if (!isRoot()) return [warn("jail", "its features can only be tried by root", "Run: sudo ./svc doctor")];
  const root = existsSync(join(instance.packagesDir, "rootfs")) ? rootImage(instance) : "/";
  const { stdout, stderr, status } = spawnSync(JAILD, ["--check", "--root", root], {
    encoding: "utf8",
  });
  const lines = (stdout ?? "").split("\n").filter(Boolean);
  const findings = lines.map((line): Finding => {
    const [, grade = "fail", rest = line] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    return grade === "ok" ? ok("jail", rest) : jailProblem(rest);
  });
  if (status === 0) return findings;
  return findings.some(({ grade }) => grade === "fail")
    ? findings
    : [
        ...findings,
        fail(
          "jail",
          `jaild --check ended with ${status}`,
          (stderr ?? "").trim() || "Run ./svc doctor as root.",
        ),
      ];
}

/** `FEATURE fix` */
function jailProblem(line: string): Finding {
  const [, feature = line, fix] = /^(\S+)\s+(.+)$/.exec(line) ?? [];
  return fail("jail", `${feature} does not work`, fix ?? "The kernel or the container does not allow it.");
}

function image(instance: Instance): Finding[] {
  const manifest = join(instance.packagesDir, "runtimes.json");
  try {
    const { runtimes } = JSON.parse(readFileSync(manifest, "utf8")) as {
      runtimes: { language: string; version: string }[];
    };
    return [ok("image", runtimes.map(({ language, version }) => `${language} ${version}`).join(", "))];
  } catch {
    return [warn("image", "not built yet", "./svc up builds it.")];
  }
}

async function ports(instance: Instance): Promise<Finding[]> {
  const ours = readState(instance.runDir);
  if (ours !== undefined) return [ok("ports", `in use by the running copy (${ours.url})`)];
  const findings: Finding[] = [];
  for (const service of SERVICES) {
    const port = instance.ports[service];
    if (await portIsFree("127.0.0.1", port)) continue;
    findings.push(
      fail(
        "ports",
        `${port} (${service}) is taken by ${listenerOf(port) ?? "another process"}`,
        "Free it, or use --port-offset N.",
      ),
    );
  }
  return findings.length > 0
    ? findings
    : [ok("ports", SERVICES.map((service) => instance.ports[service]).join(", "))];
}

function dataFolder(instance: Instance): Finding[] {
  const folder = existingParent(instance.dataDir);
  try {
    accessSync(folder, constants.W_OK);
    return [ok("data folder", instance.dataDir)];
  } catch {
    return [
      fail("data folder", `${folder} is not writable`, "Choose another one: --data-dir DIR or SVC_DATA_DIR."),
    ];
  }
}

function resources(instance: Instance): Finding[] {
  const { bavail, bsize } = statfsSync(existingParent(instance.dataDir));
  const disk = bavail * bsize;
  const memory = availableMemory();
  return [
    disk < MIN_DISK
      ? warn("disk", `${gib(disk)} free`, `The root image and files want ${gib(MIN_DISK)}.`)
      : ok("disk", `${gib(disk)} free`),
    memory < MIN_MEMORY
      ? warn(
          "memory",
          `${gib(memory)} available`,
          "One run may use 512 MiB: lower SANDBOX_MAX_CONCURRENT_JOBS.",
        )
      : ok("memory", `${gib(memory)} available`),
  ];
}

async function running(instance: Instance): Promise<Finding[]> {
  const state: State | undefined = readState(instance.runDir);
  if (state === undefined) return [ok("service", "not running (./svc up starts it)")];
  const health = await componentHealth({ ...instance, ports: state.ports }, state.components);
  return health.map(([name, reason]) => {
    const restarts = state.components.find((component) => component.name === name)?.restarts ?? 0;
    const note = restarts > 0 ? `healthy, started again ${restarts} times` : "healthy";
    return reason === undefined
      ? ok(name, note)
      : fail(name, reason, `See ${join(instance.logsDir, `${name}.log`)}`);
  });
}

function existingParent(path: string): string {
  return existsSync(path) ? path : existingParent(dirname(path));
}

function availableMemory(): number {
  const match = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"));
  return match === null ? freemem() : Number(match[1]) * 1024;
}

function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
