/**
 * What a running copy of the system holds on the machine, as numbers: processes, mounts, cgroups, namespaces, open
 * descriptors, temporary files. For comparison before and after a load: equal numbers mean that nothing was left.
 */
import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Instance } from "@svc/cli/instance";
import { findCgroups } from "@svc/cli/system/cgroups";
import { slow } from "../jail/slowness.ts";
import { type Descriptors, descriptorsOf, total } from "./descriptors.ts";
import { holdNamespaces, isOwnUid, mountsOf } from "./leftovers.ts";
import { until } from "./processes.ts";
import { readOrEmpty } from "./read-file.ts";
import type { System } from "./system.ts";

/** The part of a running copy that says where to look. */
export type Copy = Pick<System, "instance" | "state" | "supervisorPid">;

export interface Holdings {
  /** Processes by the name of their program. */
  processes: Record<string, number>;
  /** Open descriptors of each component, by kind. */
  descriptors: Record<string, Descriptors>;
  mounts: number;
  cgroups: number;
  namespaces: number;
  /** Files that are no stored objects, below the data folder and the temporary folder. */
  files: string[];
}

const SETTLE_MS = slow(15_000);
/** A component closes a connection that waited so long for a next request (`keepAliveTimeout` of its server), and some seconds for that. */
const KEPT_CONNECTION_MS = 75_000 + 15_000;
const UNCHANGED_MS = 1500;
const WARM_MS = slow(60_000);
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
    descriptors: descriptorsByComponent(system),
    mounts: mountsOf(instance, system.supervisorPid).length,
    cgroups: findCgroups(instance.cgroup).reduce((sum, folder) => sum + foldersIn(folder), 0),
    namespaces: namespaces.names.size,
    files: [...filesIn(instance.dataDir, KEPT), ...ownTemporaryFiles(instance)].sort(),
  };
}

function descriptorsByComponent(system: Copy): Holdings["descriptors"] {
  const { components } = system.state();
  return Object.fromEntries(
    components.map(({ name, process }) => [name, process ? descriptorsOf(process.pid) : {}]),
  );
}

/** As many jails wait warm as shall: they are made off the way of requests. */
export async function untilWarm({ instance }: Copy): Promise<void> {
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

/** How long may pass until things are gone, and until kept connections are closed. */
export interface WaitTimes {
  withinMs?: number;
  closedMs?: number;
}

/**
 * Waits until nothing is held that was not held before, but for so many more descriptors in each component. How many connections
 * were in use at once differs from load to load: more than that are waited for until they close by themselves.
 */
export async function untilHeldAsBefore(
  system: Copy,
  before: Holdings,
  pooled: number,
  { withinMs = SETTLE_MS, closedMs = Math.max(withinMs, KEPT_CONNECTION_MS) }: WaitTimes = {},
): Promise<void> {
  await untilWarm(system);
  await untilNone(() => differences(before, holdingsOf(system)), withinMs);
  const more = () => moreDescriptors(before.descriptors, descriptorsByComponent(system), pooled);
  await untilNone(more, closedMs);
}

async function untilNone(find: () => unknown[], withinMs: number): Promise<void> {
  let found: unknown[] = [];
  const isNone = () => {
    found = find();
    return found.length === 0;
  };
  await until(isNone, withinMs, () => found);
}

function differences(before: Holdings, after: Holdings): unknown[] {
  const fixed = ["processes", "mounts", "cgroups", "namespaces", "files"] as const;
  return fixed.flatMap((name) => {
    const [was, is] = [JSON.stringify(before[name]), JSON.stringify(after[name])];
    return was === is ? [] : [{ name, was, is }];
  });
}

function moreDescriptors(
  before: Holdings["descriptors"],
  after: Holdings["descriptors"],
  pooled: number,
): unknown[] {
  return Object.entries(after).flatMap(([name, is]) => {
    const was = before[name] ?? {};
    return total(is) > total(was) + pooled ? [{ descriptors: name, more: moreOf(was, is) }] : [];
  });
}

/** The kinds of which there are more: how many were there and how many are there. */
function moreOf(was: Descriptors, is: Descriptors): Record<string, string> {
  return Object.fromEntries(
    Object.entries(is)
      .filter(([kind, count]) => count > (was[kind] ?? 0))
      .map(([kind, count]) => [kind, `${was[kind] ?? 0} -> ${count}`]),
  );
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
