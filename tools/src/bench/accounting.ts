/** Processor time and memory of a running copy: every component with all its descendants, the ended ones included. */

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import type { State } from "@svc/cli/supervisor/state";
import { statFields } from "@svc/cli/system/process";
import { type ComponentName, runsIn } from "@svc/cli/topology";

const TICKS_PER_SECOND = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

/** Fields after the name in /proc/PID/stat. */
const PPID = 1;
const CPU_FIELDS = [11, 12, 13, 14] as const;

/**
 * Processor milliseconds by process since its start: its own, those of live descendants, and those of descendants that were
 * waited for.
 */
export function cpuByComponent(state: State): Map<ComponentName, number> {
  const children = childrenOf();
  return byComponent(state, (pid) => {
    return family(pid, children).reduce((sum, member) => sum + cpuOfProcess(member), 0);
  });
}

/**
 * Processor milliseconds of the processes in which these components run, with everything else in those processes; each
 * process counts once. Throws when one of the components does not run.
 */
export function cpuOfComponents(state: State, components: readonly ComponentName[]): number {
  const all = [...cpuByComponent(state)];
  for (const component of components) {
    if (!all.some(([process]) => runsIn(process, component))) throw new Error(`${component} does not run`);
  }
  return all
    .filter(([process]) => components.some((component) => runsIn(process, component)))
    .reduce((sum, [, ms]) => sum + ms, 0);
}

/** Whether Redis writes its log anew, in a process of its own: work of the requests before, as long as all of them took. */
export function isStoreRewriting(state: State): boolean {
  const store = state.components.find(({ name }) => name === "redis")?.process?.pid;
  return store !== undefined && (childrenOf().get(store) ?? []).length > 0;
}

/** Processor milliseconds of one process, with its ended children. */
export function cpuOfProcess(pid: number): number {
  const fields = statFields(pid);
  const ticks = fields === undefined ? 0 : CPU_FIELDS.reduce((sum, field) => sum + Number(fields[field]), 0);
  return (ticks / TICKS_PER_SECOND) * 1000;
}

/** Proportional set size in MiB by component, descendants included. */
export function pssByComponent(state: State): Map<ComponentName, number> {
  const children = childrenOf();
  return byComponent(state, (pid) => family(pid, children).reduce((sum, member) => sum + pssOf(member), 0));
}

function byComponent(state: State, measure: (pid: number) => number): Map<ComponentName, number> {
  const result = new Map<ComponentName, number>();
  for (const { name, process } of state.components) {
    if (process !== undefined) result.set(name, measure(process.pid));
  }
  return result;
}

function childrenOf(): Map<number, number[]> {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(statFields(Number(name))?.[PPID] ?? 0);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  return children;
}

function family(pid: number, children: ReadonlyMap<number, number[]>): number[] {
  return [pid, ...(children.get(pid) ?? []).flatMap((child) => family(child, children))];
}

function pssOf(pid: number): number {
  try {
    const match = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"));
    return Number(match?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
