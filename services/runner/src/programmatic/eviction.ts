/**
 * Selects the paused programs to evict. A principal over its share loses its own longest pause. When all paused programs are
 * too many or too large, or the machine runs short of memory, the principal that holds most loses its longest pause; among
 * equals, the one that paused last. So no principal loses a pause to one that holds more. Only `machineMemory` reads state.
 */
import { readFileSync } from "node:fs";
import type { EvictionCause } from "../metrics.ts";

export interface EvictionCandidate {
  /** The program's owner; opaque. */
  principal: string;
  pausedAtMs: number;
  memoryBytes: number;
}

export interface Machine {
  totalBytes: number;
  availableBytes: number;
}

export interface PauseLimits {
  maxPaused: number;
  maxPerPrincipal: number;
}

/** Shares of the machine's memory: how much paused programs may hold together, and how much must stay available. */
export const PAUSED_SHARE = 0.5;
export const AVAILABLE_SHARE = 0.1;

/** The paused programs of one principal, longest pause first. */
interface Holder<P> {
  programs: P[];
  bytes: number;
}

interface Eviction<P> {
  program: P;
  cause: EvictionCause;
}

export function selectEvictions<P extends EvictionCandidate>(
  paused: Iterable<P>,
  { maxPaused, maxPerPrincipal }: PauseLimits,
  { totalBytes, availableBytes }: Machine,
): Eviction<P>[] {
  const evictions: Eviction<P>[] = [];
  const holders = holdersOf(paused);
  let [count, heldBytes] = [0, 0];
  for (const { programs, bytes } of holders) {
    count += programs.length;
    heldBytes += bytes;
  }
  let missingBytes = AVAILABLE_SHARE * totalBytes - availableBytes;
  const choose = (holder: Holder<P> | undefined, cause: EvictionCause): void => {
    const program = holder?.programs.shift();
    if (holder === undefined || program === undefined) return;
    evictions.push({ program, cause });
    holder.bytes -= program.memoryBytes;
    heldBytes -= program.memoryBytes;
    missingBytes -= program.memoryBytes;
    count--;
  };
  const ofShare = maxPerPrincipal < maxPaused ? "max_paused_per_principal" : "max_paused";
  for (const holder of holders) while (holder.programs.length > maxPerPrincipal) choose(holder, ofShare);
  while (count > maxPaused)
    choose(
      largest(holders, ({ programs }) => programs.length),
      "max_paused",
    );
  while (count > 0 && (heldBytes > PAUSED_SHARE * totalBytes || missingBytes > 0)) {
    choose(
      largest(holders, ({ bytes }) => bytes),
      "memory",
    );
  }
  return evictions;
}

function holdersOf<P extends EvictionCandidate>(paused: Iterable<P>): Holder<P>[] {
  const holders = new Map<string, Holder<P>>();
  for (const program of [...paused].sort((left, right) => left.pausedAtMs - right.pausedAtMs)) {
    const holder = holders.get(program.principal) ?? { programs: [], bytes: 0 };
    holders.set(program.principal, holder);
    holder.programs.push(program);
    holder.bytes += program.memoryBytes;
  }
  return [...holders.values()];
}

function largest<P extends EvictionCandidate>(
  holders: readonly Holder<P>[],
  sizeOf: (holder: Holder<P>) => number,
): Holder<P> | undefined {
  let found: Holder<P> | undefined;
  for (const holder of holders) {
    if (holder.programs.length === 0) continue;
    const more = found === undefined ? 1 : sizeOf(holder) - sizeOf(found);
    if (more > 0 || (more === 0 && lastPause(holder) > lastPause(found as Holder<P>))) found = holder;
  }
  return found;
}

const lastPause = ({ programs }: Holder<EvictionCandidate>) => programs.at(-1)?.pausedAtMs ?? 0;

export function machineMemory(): Machine {
  const text = readFileSync("/proc/meminfo", "utf8");
  const bytesOf = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB$`, "m").exec(text)?.[1]) * 1024;
  return { totalBytes: bytesOf("MemTotal"), availableBytes: bytesOf("MemAvailable") };
}
