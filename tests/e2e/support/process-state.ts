/** What a process may do, as the kernel tells it, in the terms of privileges.ts. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { COMPONENT_IDS } from "@svc/cli/instance";
import { type ComponentName, logsOf } from "@svc/cli/topology";
import { isUnprivileged, userOf } from "@svc/cli/users";
import { treeOf } from "@svc/test-kit/system/holdings";
import type { System } from "@svc/test-kit/system/system";
import { type Kind, PRIVILEGES, type Row } from "./privileges.ts";

export interface ProcessState extends Omit<Row, "reaches" | "user" | "oomScore"> {
  kind: Kind;
  pid: string;
  /** Distinct ids: real, effective, saved, of files. */
  uids: number[];
  gids: number[];
  groups: number[];
  /** The effective ones are all that are permitted, and none can be inherited. */
  permitted: string;
  oomScore: number;
}

/** All capabilities that root has on this machine. */
export function capabilitiesOfRoot(): bigint {
  return BigInt(`0x${/^CapBnd:\s+(\w+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0"}`);
}

const ALL = capabilitiesOfRoot();

/** All processes of a copy. One that ends meanwhile is left out. */
export function processStates(system: System): ProcessState[] {
  const kinds = kindsOf(system);
  return treeOf(system.supervisorPid).flatMap((pid) => {
    try {
      return [stateOf(pid, kinds(pid), system)];
    } catch (error) {
      if (["ENOENT", "ESRCH", "EINVAL"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
      throw error;
    }
  });
}

function kindsOf(system: System): (pid: string) => Kind {
  const known = new Map<string, Kind>([[String(system.supervisorPid), "supervisor"]]);
  for (const { name, process } of system.state().components)
    if (name !== "launcher") known.set(String(process?.pid), name);
  return (pid) => {
    const kind = known.get(pid);
    if (kind !== undefined) return kind;
    if (/^NSpid:\t\d+\t/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))) return "jailed";
    return readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("jaild") ? "keeper" : "zygote";
  };
}

function stateOf(pid: string, kind: Kind, system: System): ProcessState {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const field = (name: string) => new RegExp(`^${name}:[\\t ]*(.*)$`, "m").exec(status)?.[1] ?? "";
  const numbers = (name: string) => [...new Set(field(name).split(/\s+/).filter(Boolean).map(Number))];
  return {
    kind,
    pid,
    uids: numbers("Uid"),
    gids: numbers("Gid"),
    groups: numbers("Groups"),
    effective: capabilities(field("CapEff")),
    permitted: capabilities(field("CapPrm")),
    bounding: capabilities(field("CapBnd")),
    noNewPrivileges: field("NoNewPrivs") === "1",
    filtered: field("Seccomp") === "2",
    oomScore: Number(readFileSync(`/proc/${pid}/oom_score_adj`, "latin1")),
    descriptors: [...new Set(descriptorsOf(pid, kind, system))].sort(),
  };
}

function capabilities(hex: string): string {
  const value = BigInt(`0x${hex}`);
  return value === ALL ? "all" : value.toString(16);
}

/** The ids that a process of this kind must have. */
export function expectedIds(
  kind: Kind,
  { instance }: System,
): { uid: (uid: number) => boolean; gid: (gid: number) => boolean } {
  if (kind === "jailed") {
    const slot = (base: number) => (id: number) => id >= base && id < base + 1024;
    return { uid: slot(instance.jobUidBase), gid: slot(instance.jobGidBase) };
  }
  const below = { uid: instance.jobUidBase - COMPONENT_IDS, gid: instance.jobGidBase - COMPONENT_IDS };
  const others = PRIVILEGES[kind].user === "jaild" ? below : { uid: 0, gid: 0 };
  const wanted = isUnprivileged(kind as never) ? userOf(kind as never, instance) : others;
  return { uid: (uid) => uid === wanted.uid, gid: (gid) => gid === wanted.gid };
}

function descriptorsOf(pid: string, kind: Kind, system: System): string[] {
  return readdirSync(`/proc/${pid}/fd`).map((fd) => {
    const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
    if (kind === "supervisor" && Number(fd) <= 2) return "stdio";
    return kindOf(target, kind, system);
  });
}

function kindOf(target: string, kind: Kind, { instance }: System): string {
  const { dataDir, logsDir, toolDirectory } = instance;
  const own = kind === "keeper" ? "jaild" : kind;
  const ownLogs = logsOf(own as ComponentName).map((name) => join(logsDir, `${name}.log`));
  const anonymous = /^anon_inode:\[?(\w+)\]?$/.exec(target)?.[1];
  if (anonymous !== undefined) return anonymous;
  const special = /^(pipe|socket|mnt|net|pid|user|ipc|uts|cgroup|time):/.exec(target)?.[1];
  if (special === "pipe" || special === "socket") return special;
  if (special !== undefined) return "namespace";
  if (target === "/dev/null") return "null";
  if (ownLogs.includes(target)) return "log";
  if (target.startsWith("/memfd:")) return "memfd";
  if (target.startsWith("/sys/fs/cgroup/")) return "cgroup";
  if (target === toolDirectory) return "tools";
  if (target.startsWith(join(dataDir, "objects/"))) return "object";
  if (target.startsWith(join(dataDir, "redis/"))) return "redis";
  if (/^\/tmp\/svc-input-\w+ \(deleted\)$/.test(target)) return "input";
  if (kind === "keeper") return target.startsWith("/proc") ? "proc" : "jail";
  return target;
}
