/**
 * Checks settings of the host that limit or weaken jails, as the kernel's own files show them. jaild tries everything that
 * can be tried (./jail.ts). These settings cannot be tried, or would only show their effect under load. Pure: each function
 * takes texts as the kernel writes them.
 */
import { type Finding, fail, ok, warn } from "./finding.ts";

type Text = string | undefined;

const MIN_KERNEL = [5, 12] as const;

/** `release`: as uname says it. ./svc itself runs on Linux alone. */
export function kernel(system: { name: string; release: string; architecture: string }): Finding {
  const note = `${system.name}, kernel ${system.release}, ${system.architecture}`;
  const [major = 0, minor = 0] = system.release.split(".").map(Number);
  const [needMajor, needMinor] = MIN_KERNEL;
  const old = major < needMajor || (major === needMajor && minor < needMinor);
  return old
    ? fail("system", note, `The jail needs kernel ${MIN_KERNEL.join(".")} or newer.`)
    : ok("system", note);
}

export function rights({ isRoot, hasSudo }: { isRoot: boolean; hasSudo: boolean }): Finding {
  if (isRoot) return ok("rights", "root");
  return hasSudo
    ? ok("rights", "through sudo")
    : fail(
        "rights",
        "neither root nor sudo",
        "The jail is made by root: run ./svc as root, or install sudo.",
      );
}

const REDIS_MAJOR = 7;

/** `says`: the server's answer to --version. Undefined: no server is installed. */
export function redis(server: { program: string; says: string } | undefined): Finding {
  if (server === undefined) return fail("redis", "not installed", "./svc up installs it.");
  const version = /v=(\d+)\.[\d.]+/.exec(server.says);
  const note = `${version?.[0].slice(2) ?? "unknown version"} (${server.program})`;
  return Number(version?.[1] ?? 0) >= REDIS_MAJOR
    ? ok("redis", note)
    : fail("redis", note, "Redis 7 or Valkey is needed: install it, or name another server with REDIS_URL.");
}

const NAMESPACES = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] as const;
/** Namespaces that others on the machine may have. */
const OTHERS = 8;

/** `jails`: the number that may exist at once. Each jail has one namespace of every kind. */
export function namespaceCounts(maximum: (file: string) => Text, jails: number): Finding {
  const needed = jails + OTHERS;
  const tooFew = NAMESPACES.filter(
    (kind) => Number(maximum(`/proc/sys/user/max_${kind}_namespaces`) ?? 0) < needed,
  );
  if (tooFew.length === 0) return ok("namespaces", `room for ${jails} jails`);
  const settings = tooFew.map((kind) => `user.max_${kind}_namespaces=${needed * 2}`).join(" ");
  return fail("namespaces", `too few for ${jails} jails: ${tooFew.join(", ")}`, `sysctl -w ${settings}`);
}

/** Ubuntu restricts user namespaces only for unprivileged processes. jaild is privileged when it makes the namespaces of jails. */
export function appArmor(restriction: Text, profile: Text): Finding {
  const label = profile?.trim().replace(/\0/g, "") ?? "";
  const confined = label !== "" && label !== "unconfined";
  if (confined) {
    return warn(
      "apparmor",
      `./svc runs under the profile ${label}`,
      "When a namespace or mount above does not work, allow userns and mount in this profile, or run unconfined.",
    );
  }
  return ok(
    "apparmor",
    restriction?.trim() === "1"
      ? "restricts user namespaces of unprivileged processes, which jails are not"
      : "no restriction",
  );
}

/** `processFiles`: what the configuration promises to each process of a run. */
export function openFiles(limits: Text, { needed, processFiles }: { needed: number; processFiles: number }) {
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(limits ?? "")?.[1];
  const most = hard === "unlimited" ? Number.POSITIVE_INFINITY : Number(hard ?? 0);
  if (most < needed) {
    return fail(
      "ulimits",
      `open files: ${hard ?? "unknown"}`,
      `The services need ${needed}: ulimit -Hn ${needed}`,
    );
  }
  if (most < processFiles) {
    return warn(
      "ulimits",
      `open files: ${hard}`,
      `A process of a run may be promised ${processFiles} (SANDBOX_MAX_OPEN_FILES): ulimit -Hn ${processFiles}`,
    );
  }
  return ok("ulimits", `open files: ${hard}`);
}

/** `processes`: the total of all runs that may be active at once. */
export function processNumbers(pidMax: Text, threadsMax: Text, processes: number): Finding {
  const room = Math.min(Number(pidMax ?? 0), Number(threadsMax ?? 0));
  const note = `room for ${room} on this machine, runs may take ${processes}`;
  return room > processes
    ? ok("processes", note)
    : warn(
        "processes",
        note,
        `sysctl -w kernel.pid_max=${processes * 4} kernel.threads-max=${processes * 4}`,
      );
}

/** `mounts`: the text of a mountinfo file. Only the last mount on /proc is visible. */
export function procMount(mounts: Text): Finding {
  const options = (mounts ?? "")
    .split("\n")
    .map((line) => line.split(" - "))
    .filter(([place, rest]) => place?.split(" ")[4] === "/proc" && rest?.startsWith("proc "))
    .map(([, rest]) => rest?.split(" ")[2]?.split(",") ?? [])
    .at(-1);
  if (options === undefined) return fail("proc", "no proc file system on /proc", "mount -t proc proc /proc");
  if (options.includes("subset=pid")) {
    return fail("proc", "mounted with subset=pid", "mount -o remount,subset= /proc");
  }
  const hidden = options.find((option) => option.startsWith("hidepid="));
  return hidden !== undefined && hidden !== "hidepid=0" && hidden !== "hidepid=off"
    ? ok("proc", `mounted with ${hidden}`)
    : ok("proc", "users of this machine see the processes of runs (hidepid=invisible hides them)");
}

export interface ClockReading {
  /** The system clock before and after the other two readings. */
  beforeMs: number;
  afterMs: number;
  /** The time between them on the monotonic clock. */
  tookMs: number;
  /** Modification time of a file that was written meanwhile. */
  fileMs: number;
}

const EARLIEST_CLOCK = Date.UTC(2025, 0, 1);
/** Kernels stamp files by a clock that ticks. */
const FILE_SLACK_MS = 50;
const FILE_FAIL_MS = 30_000;
const PACE_SLACK_MS = 200;

export function clock({ beforeMs, afterMs, tookMs, fileMs }: ClockReading): Finding {
  const note = new Date(afterMs).toISOString();
  if (afterMs < EARLIEST_CLOCK) return fail("clock", note, "Set the clock: signed requests expire by it.");
  if (Math.abs(afterMs - beforeMs - tookMs) > PACE_SLACK_MS) {
    return warn("clock", `${note}, and it jumps`, "Let it be set gradually (chrony, systemd-timesyncd).");
  }
  const skew = Math.max(beforeMs - FILE_SLACK_MS - fileMs, fileMs - afterMs - FILE_SLACK_MS, 0);
  if (skew === 0) return ok("clock", `${note}, files agree`);
  const text = `${note}, but files of the data folder are stamped ${Math.round(skew)} ms off`;
  const fix = "The data folder lies on a machine with another clock: set both by the same time server.";
  return skew > FILE_FAIL_MS ? fail("clock", text, fix) : warn("clock", text, fix);
}

/** `files`: what all processes of all active runs may have open. Beyond the machine's limit only root can open a file. */
export function fileNumbers(fileMax: Text, files: number): Finding {
  const most = Number(fileMax ?? 0);
  const note = `${most} open files on this machine, runs may have ${files}`;
  return most > files
    ? ok("open files", note)
    : warn(
        "open files",
        note,
        `sysctl -w fs.file-max=${files * 2}, or lower SANDBOX_MAX_OPEN_FILES or SANDBOX_MAX_PROCESS_COUNT`,
      );
}

/**
 * A core handler behind a pipe runs as root and reads what crashed. Jails limit core files to one byte, so that it is not
 * called for them.
 */
export function corePattern(pattern: Text): Finding {
  const text = pattern?.trim() ?? "";
  const where = text.startsWith("|") ? `the program ${text.slice(1)}` : `files (${text})`;
  return ok("core dumps", `go to ${where}; jails make none`);
}

/** What the processor lets programs learn about each other. For information only: jails do not protect against it. */
export function speculation(smt: Text, vulnerabilities: Readonly<Record<string, string>>): Finding {
  const open = Object.entries(vulnerabilities)
    .filter(([, state]) => /^(Vulnerable|Mitigation:.*vulnerable)/i.test(state))
    .map(([name]) => name);
  const shared = smt?.trim() === "1";
  const note = [
    shared ? "programs share processor cores (SMT)" : "no SMT",
    open.length > 0 ? `not mitigated: ${open.join(", ")}` : "all known flaws mitigated",
  ].join("; ");
  const fix = [
    ...(shared ? ["echo off >/sys/devices/system/cpu/smt/control"] : []),
    ...(open.length > 0
      ? ["newer microcode and kernel, or mitigations=auto,nosmt on the kernel's command line"]
      : []),
  ].join("; ");
  return {
    ...ok("processor", note),
    ...(fix === "" ? {} : { fix: `between tenants that must not share: ${fix}` }),
  };
}

const GIB = 2 ** 30;
/** The space for the root image and files; the minimum for a copy, and the minimum for the build of an image. */
const ENOUGH_DISK = 3 * GIB;
const LEAST_DISK = { built: 0.25 * GIB, unbuilt: 1 * GIB };
const ENOUGH_INODES = 100_000;
const LEAST_INODES = { built: 1000, unbuilt: 30_000 };
const ENOUGH_MEMORY = 1.5 * GIB;
/** The minimum for the components alone, without any program. */
const LEAST_MEMORY = 0.25 * GIB;

/** `isBuilt`: whether the root image is there. */
export function disk(free: number, isBuilt: boolean): Finding {
  const note = `${gib(free)} free`;
  const fix = `Free some space: the root image and files want ${gib(ENOUGH_DISK)}.`;
  if (free < (isBuilt ? LEAST_DISK.built : LEAST_DISK.unbuilt)) return fail("disk", note, fix);
  return free < ENOUGH_DISK ? warn("disk", note, fix) : ok("disk", note);
}

export function inodes({ total, free }: { total: number; free: number }, isBuilt: boolean): Finding {
  // Some file systems have no fixed number and say 0 of 0.
  if (total === 0) return ok("inodes", "not limited");
  const note = `${free} free`;
  const fix = `Remove files: the root image and files want ${ENOUGH_INODES} inodes.`;
  if (free < (isBuilt ? LEAST_INODES.built : LEAST_INODES.unbuilt)) return fail("inodes", note, fix);
  return free < ENOUGH_INODES ? warn("inodes", note, fix) : ok("inodes", note);
}

export function memory(available: number): Finding {
  const note = `${gib(available)} available`;
  const fix = "One run may use 512 MiB: lower SANDBOX_MAX_CONCURRENT_JOBS, or end other programs.";
  if (available < LEAST_MEMORY) return fail("memory", note, fix);
  return available < ENOUGH_MEMORY ? warn("memory", note, fix) : ok("memory", note);
}

function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
