/** What processes use: processor time, to the nanosecond, and memory that would be free without them. Needs root. */
import { readdirSync } from "node:fs";
import { readOrEmpty } from "./read-file.ts";

const MIB = 2 ** 20;

/** Milliseconds of processor time that the threads of these processes have had so far. */
export function cpuMs(pids: readonly string[]): number {
  return sum(pids, (pid) =>
    sum(
      threadsOf(pid),
      (thread) => Number(readOrEmpty(`/proc/${pid}/task/${thread}/schedstat`).split(" ")[0]) / 1e6,
    ),
  );
}

/** MiB of the processes together; what they share with others counts by its part. */
export function memoryMiB(pids: readonly string[]): number {
  return sum(pids, (pid) => {
    const kibibytes = /^Pss:\s+(\d+) kB/m.exec(readOrEmpty(`/proc/${pid}/smaps_rollup`))?.[1];
    return (Number(kibibytes ?? 0) * 1024) / MIB;
  });
}

/** Short name of a process's program. */
export const nameOf = (pid: string) => readOrEmpty(`/proc/${pid}/comm`).trim();

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

const sum = (names: readonly string[], of: (name: string) => number) =>
  names.reduce((total, name) => total + of(name), 0);

function threadsOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}
