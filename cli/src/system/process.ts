/** Processes by identity: a pid together with its start time, so that a reused pid is never taken for ours. */
import { readdirSync, readFileSync } from "node:fs";
import { constants } from "node:os";

/** Signals with which a person, a terminal or a supervisor ends a process. */
export const END_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The exit code with which a shell reports that a signal ended a process. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

export interface ProcessIdentity {
  pid: number;
  /** Start time in clock ticks since boot. */
  startTicks: number;
}

/** Identity of a live process (no zombie), or undefined. */
export function identify(pid: number): ProcessIdentity | undefined {
  const fields = statFields(pid);
  if (fields === undefined || fields[0] === "Z" || fields[0] === "X") return undefined;
  return { pid, startTicks: Number(fields[19]) };
}

/** The identity of this process. */
export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, startTicks: Number(statFields(process.pid)?.[19]) };
}

/** Fields of /proc/PID/stat from the third on (state, ppid, …); the name before them may hold spaces. */
export function statFields(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}

export function isAlive(process: ProcessIdentity): boolean {
  return identify(process.pid)?.startTicks === process.startTicks;
}

/** Sends a signal to exactly this process. False when it is gone. */
export function signalProcess(target: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(target)) return false;
  try {
    return process.kill(target.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

/** Waits until the process is gone. False when the time is over first. */
export async function waitGone(target: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const end = performance.now() + timeoutMs;
  while (isAlive(target)) {
    if (performance.now() > end) return false;
    await sleep(20);
  }
  return true;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Entries of /proc that are no processes. */
export function entriesOfProc(): string[] {
  return readdirSync("/proc").filter((name) => !/^\d+$/.test(name));
}
