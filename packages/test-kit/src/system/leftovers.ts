/** What a copy of the system may leave on a machine: processes, mounts, cgroups, namespaces, sockets. */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { COMPONENT_IDS, type Instance, ROOT } from "@svc/cli/instance";
import { findCgroups } from "@svc/cli/system/cgroups";
import { identify } from "@svc/cli/system/process";
import { readOrEmpty } from "./read-file.ts";

const NAMESPACES = ["net", "mnt", "pid", "user", "ipc", "uts", "cgroup"] as const;
const SLOT_IDS = 1024;

export interface Baseline {
  mounts: ReadonlySet<string>;
  namespaces: ReadonlySet<string>;
}

export function takeBaseline(): Baseline {
  return { mounts: new Set(mountTable()), namespaces: namespacesOf(pids()) };
}

/** Namespaces of one copy. They are kept open, so that nobody else's namespace can get one of their numbers meanwhile. */
export interface HeldNamespaces {
  names: ReadonlySet<string>;
  release: () => void;
}

/** Namespaces that exist only because of this copy; asked while it runs. */
export function holdNamespaces(instance: Instance, baseline: Baseline): HeldNamespaces {
  const names = new Set<string>();
  const descriptors: number[] = [];
  for (const { pid } of ownProcesses(instance)) {
    for (const kind of NAMESPACES) {
      try {
        const path = `/proc/${pid}/ns/${kind}`;
        if (baseline.namespaces.has(readlinkSync(path))) continue;
        const descriptor = openSync(path, "r");
        descriptors.push(descriptor);
        names.add(readlinkSync(`/proc/self/fd/${descriptor}`));
      } catch {
        // The process is gone, or it is a zombie without namespaces.
      }
    }
  }
  return { names, release: () => descriptors.forEach(closeSync) };
}

/** One sentence for each thing that was not there before the copy was started. */
export function leftovers(instance: Instance, baseline: Baseline, namespaces: ReadonlySet<string>): string[] {
  const left: string[] = [];
  for (const { pid, reason } of ownProcesses(instance)) left.push(`process ${pid}: ${reason}`);
  for (const folder of findCgroups(instance.cgroup)) left.push(`cgroup ${folder}`);
  for (const mount of mountsOf(instance)) if (!baseline.mounts.has(mount)) left.push(`mount ${mount}`);
  for (const name of namespacesOf(pids())) if (namespaces.has(name)) left.push(`namespace ${name}`);
  if (existsSync(instance.runDir))
    left.push(...readdirSync(instance.runDir).map((name) => `file run/${name}`));
  return left;
}

function ownProcesses(instance: Instance): { pid: string; reason: string }[] {
  const found: { pid: string; reason: string }[] = [];
  for (const pid of pids()) {
    const command = readOrEmpty(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
    const uid = Number(/^Uid:\s+(\d+)/m.exec(readOrEmpty(`/proc/${pid}/status`))?.[1] ?? -1);
    if (isOwnUid(instance, uid) || command.includes(instance.dataDir))
      found.push({ pid, reason: `uid ${uid}: ${command}` });
    else if (readOrEmpty(`/proc/${pid}/environ`).includes(`SVC_DATA_DIR=${instance.dataDir}\0`)) {
      found.push({ pid, reason: command });
    }
  }
  return found;
}

/** User ids of the components and of the programs. */
export function isOwnUid({ jobUidBase }: Instance, uid: number): boolean {
  return uid >= jobUidBase - COMPONENT_IDS && uid < jobUidBase + SLOT_IDS;
}

/** Live processes; one that has ended and waits for init to fetch its status holds nothing. */
function pids(): string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && identify(Number(name)) !== undefined);
}

/** Where a mount of a jail would land if it leaked into the machine's own tree. */
const JAIL_MOUNTS = /^\/($|mnt|tmp$|run$|dev|proc|sys)/;

/** Mounts that this copy could have made: others may mount things elsewhere at any time. `process`: in whose mount namespace. */
export function mountsOf({ dataDir, packagesDir }: Instance, process: number | "self" = "self"): string[] {
  return mountTable(process).filter((line) => {
    const [, , , , point = ""] = line.split(" ");
    return JAIL_MOUNTS.test(point) || [dataDir, packagesDir, ROOT].some((folder) => line.includes(folder));
  });
}

function mountTable(process: number | "self" = "self"): string[] {
  return readFileSync(`/proc/${process}/mountinfo`, "utf8").split("\n").filter(Boolean);
}

function namespacesOf(processes: readonly string[]): Set<string> {
  const names = new Set<string>();
  for (const pid of processes) {
    for (const kind of NAMESPACES) {
      try {
        names.add(readlinkSync(`/proc/${pid}/ns/${kind}`));
      } catch {
        // The process is gone, or it is a zombie without namespaces.
      }
    }
  }
  return names;
}
