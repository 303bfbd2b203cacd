/**
 * What a running copy of the system holds on the machine, as numbers: processes, mounts, cgroups, namespaces, open
 * descriptors, temporary files. For comparison before and after a load: equal numbers mean that nothing was left.
 */
import { type Dirent, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Instance } from "@svc/cli/instance";
import { findCgroups } from "@svc/cli/system/cgroups";
import { holdNamespaces, isOwnUid, mountsOf } from "./leftovers.ts";
import { until } from "./processes.ts";
import { readOrEmpty } from "./read-file.ts";
import type { System } from "./system.ts";

/** The part of a running copy that says where to look. */
export type Copy = Pick<System, "instance" | "state" | "supervisorPid">;

export interface Holdings {
  /** Processes by the name of their program. */
  processes: Record<string, number>;
  /** Open descriptors of each component. */
  descriptors: Record<string, number>;
  mounts: number;
  cgroups: number;
  namespaces: number;
  /** Files that are no stored objects, below the data folder and the temporary folder. */
  files: string[];
}

/** Connections that are kept open for a next request close by themselves; the rest goes at once. */
const SETTLE_MS = 15_000;
const UNCHANGED_MS = 1500;
const WARM_MS = 60_000;
/** Keeps the number of warm jails constant: a larger pool of pre-started interpreters grows with use and shrinks after a quiet minute. */
export const STEADY_POOL = { SANDBOX_WARM_POOL: "1" };
const NOTHING = { mounts: new Set<string>(), namespaces: new Set<string>() };
/** Stored objects are meant to stay; logs and the append-only files of Redis grow and rotate. */
const KEPT = new Set(["sessions", "logs", "redis"]);

export function holdingsOf(system: Copy): Holdings {
  const { instance } = system;
  const namespaces = holdNamespaces(instance, NOTHING);
  namespaces.release();
  return {
    processes: countBy(treeOf(system.supervisorPid).map(programOf)),
    descriptors: Object.fromEntries(
      system.state().components.map(({ name, process }) => [name, process ? descriptorsOf(process.pid) : 0]),
    ),
    mounts: mountsOf(instance).length,
    cgroups: findCgroups(instance.cgroup).reduce((sum, folder) => sum + foldersIn(folder), 0),
    namespaces: namespaces.names.size,
    files: [...filesIn(instance.dataDir, KEPT), ...ownTemporaryFiles(instance)].sort(),
  };
}

/** As many jails wait warm as shall: they are made off the way of requests. */
async function untilWarm({ instance }: Copy): Promise<void> {
  await until(async () => {
    const text = await (await fetch(`http://127.0.0.1:${instance.ports.runner}/metrics`)).text();
    const counts = [...text.matchAll(/^svc_sandbox_warm_jails\{zygote="(.+)",number="(\w+)"\} (\d+)$/gm)];
    const sum = (kind: string) =>
      counts.reduce((total, [, , number, count]) => total + (number === kind ? Number(count) : 0), 0);
    return sum("waiting") === sum("wanted");
  }, WARM_MS);
}

/** Holdings that stayed the same for a while: no jail is being made any more. */
export async function settledHoldings(system: Copy): Promise<Holdings> {
  await untilWarm(system);
  let last = "";
  let since = 0;
  let current = holdingsOf(system);
  await until(() => {
    current = holdingsOf(system);
    const text = JSON.stringify({ ...current, descriptors: 0 });
    if (text !== last) since = performance.now();
    last = text;
    return performance.now() - since >= UNCHANGED_MS;
  }, SETTLE_MS);
  return current;
}

/** Waits until nothing is held that was not held before, but for so many more descriptors in each component. */
export async function untilHeldAsBefore(
  system: Copy,
  before: Holdings,
  pooled: number,
  withinMs = SETTLE_MS,
): Promise<void> {
  let found: unknown[] = [];
  await untilWarm(system);
  await until(
    () => {
      found = differences(before, holdingsOf(system), pooled);
      return found.length === 0;
    },
    withinMs,
    () => found,
  );
}

function differences(before: Holdings, after: Holdings, pooled: number): unknown[] {
  const found: unknown[] = [];
  const fixed = ["processes", "mounts", "cgroups", "namespaces", "files"] as const;
  for (const name of fixed) {
    const [was, is] = [JSON.stringify(before[name]), JSON.stringify(after[name])];
    if (was !== is) found.push({ name, was, is });
  }
  for (const [name, is] of Object.entries(after.descriptors)) {
    const was = before.descriptors[name] ?? 0;
    if (is > was + pooled) found.push({ descriptors: name, was, is });
  }
  return found;
}

/** The process and all that descend from it. */
export function treeOf(root: number): string[] {
  const children = new Map<string, string[]>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const parent = /^\d+ \(.*\) \S (\d+)/s.exec(readOrEmpty(`/proc/${pid}/stat`))?.[1] ?? "";
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const tree = [String(root)];
  for (let at = 0; at < tree.length; at++) tree.push(...(children.get(tree[at] as string) ?? []));
  return tree;
}

function programOf(pid: string): string {
  const words = readOrEmpty(`/proc/${pid}/cmdline`).split("\0");
  return words.find((word) => word.includes("/services/")) ?? words[0] ?? "";
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names.toSorted()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function descriptorsOf(pid: number): number {
  let count = 0;
  for (const fd of entriesOf(`/proc/${pid}/fd`)) {
    try {
      readlinkSync(`/proc/${pid}/fd/${fd.name}`);
      count++;
    } catch {
      // It was closed meanwhile.
    }
  }
  return count;
}

function foldersIn(folder: string): number {
  const folders = entriesOf(folder).filter((entry) => entry.isDirectory());
  return 1 + folders.reduce((sum, { name }) => sum + foldersIn(join(folder, name)), 0);
}

function filesIn(folder: string, except: ReadonlySet<string>): string[] {
  return entriesOf(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    return except.has(entry.name) ? [] : filesIn(path, except);
  });
}

/** Entries of the temporary folder that belong to a user of this copy. The folder is everybody's. */
function ownTemporaryFiles(instance: Instance): string[] {
  return entriesOf(tmpdir())
    .map(({ name }) => join(tmpdir(), name))
    .filter((path) => {
      const uid = lstatSync(path, { throwIfNoEntry: false })?.uid ?? 0;
      return path !== instance.dataDir && isOwnUid(instance, uid);
    });
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
