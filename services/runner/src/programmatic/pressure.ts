/**
 * Which paused programs have to go: more than may be paused, more memory than they may hold together, or memory of the
 * machine running short. The one that has been paused longest goes first. Pure but for reading what the machine has.
 */
import { readFileSync } from "node:fs";
import type { EvictionCause } from "../metrics.ts";

export interface Paused {
  pausedAtMs: number;
  memoryBytes: number;
}

export interface Machine {
  totalBytes: number;
  availableBytes: number;
}

/** Of the machine's memory: how much paused programs may hold together, and how much must stay available. */
export const PAUSED_SHARE = 0.5;
export const AVAILABLE_SHARE = 0.1;

export function victims<P extends Paused>(
  paused: Iterable<P>,
  maxPaused: number,
  { totalBytes, availableBytes }: Machine,
): { program: P; cause: EvictionCause }[] {
  const oldest = [...paused].sort((left, right) => left.pausedAtMs - right.pausedAtMs);
  const chosen: { program: P; cause: EvictionCause }[] = [];
  let heldBytes = oldest.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
  let missingBytes = AVAILABLE_SHARE * totalBytes - availableBytes;
  for (const [at, program] of oldest.entries()) {
    const tooMany = oldest.length - at > maxPaused;
    if (!tooMany && heldBytes <= PAUSED_SHARE * totalBytes && missingBytes <= 0) break;
    chosen.push({ program, cause: tooMany ? "max_paused" : "memory" });
    heldBytes -= program.memoryBytes;
    missingBytes -= program.memoryBytes;
  }
  return chosen;
}

export function machineMemory(): Machine {
  const text = readFileSync("/proc/meminfo", "utf8");
  const bytesOf = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB$`, "m").exec(text)?.[1]) * 1024;
  return { totalBytes: bytesOf("MemTotal"), availableBytes: bytesOf("MemAvailable") };
}
