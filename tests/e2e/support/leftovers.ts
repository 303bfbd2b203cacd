/** What a copy of the system may leave on a machine: processes, mounts, cgroups, namespaces, sockets. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Instance } from "@svc/cli/instance";
import { findCgroups } from "@svc/cli/system/cgroups";

const NAMESPACES = ["net", "mnt", "pid", "user", "ipc", "uts", "cgroup"] as const;
const UIDS_PER_COPY = 1024;

export interface Baseline {
  mounts: string;
  namespaces: ReadonlySet<string>;
}

export function takeBaseline(): Baseline {
  return { mounts: mountTable(), namespaces: namespacesOf(pids()) };
}

/** Namespaces that exist only because of this copy; asked while it runs. */
export function ownNamespaces(instance: Instance, baseline: Baseline): Set<string> {
  const own = namespacesOf(ownProcesses(instance).map(({ pid }) => pid));
  return new Set([...own].filter((name) => !baseline.namespaces.has(name)));
}

/** One sentence for each thing that was not there before the copy was started. */
export function leftovers(instance: Instance, baseline: Baseline, namespaces: ReadonlySet<string>): string[] {
  const left: string[] = [];
  for (const { pid, reason } of ownProcesses(instance)) left.push(`process ${pid}: ${reason}`);
  for (const folder of findCgroups(instance.cgroup)) left.push(`cgroup ${folder}`);
  if (mountTable() !== baseline.mounts) left.push(`mounts:\n${difference(baseline.mounts, mountTable())}`);
  for (const name of namespacesOf(pids())) if (namespaces.has(name)) left.push(`namespace ${name}`);
  if (existsSync(instance.runDir))
    left.push(...readdirSync(instance.runDir).map((name) => `file run/${name}`));
  return left;
}

function ownProcesses(instance: Instance): { pid: string; reason: string }[] {
  const found: { pid: string; reason: string }[] = [];
  for (const pid of pids()) {
    const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
    const uid = Number(/^Uid:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? -1);
    const jobUid = uid >= instance.jobUidBase - 1 && uid < instance.jobUidBase - 1 + UIDS_PER_COPY;
    if (jobUid || command.includes(instance.dataDir)) found.push({ pid, reason: `uid ${uid}: ${command}` });
    else if (read(`/proc/${pid}/environ`).includes(`SVC_DATA_DIR=${instance.dataDir}\0`)) {
      found.push({ pid, reason: command });
    }
  }
  return found;
}

function pids(): string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
}

function mountTable(): string {
  return readFileSync("/proc/self/mountinfo", "utf8");
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

function difference(before: string, after: string): string {
  const known = new Set(before.split("\n"));
  return after
    .split("\n")
    .filter((line) => !known.has(line))
    .join("\n");
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
