/**
 * Stops the processes that write to a file. A stopped process is in no system call, so nothing is appended until it
 * continues. A process that somebody else has stopped stays stopped.
 */
import { fstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { identify, type ProcessIdentity, signalProcess } from "./process.ts";

/** A process in an uninterruptible wait, as for a disk, stops only after it. */
const STOP_MS = 1000;
const LOOK_MS = 1;
const WRITING = 0o3;
/** Stopped, traced, dead. */
const STILL = /^[TtZXx]$/;

/** Runs `work` while no other process can write to the open file. False: a process did not stop in time, and `work` did not run. */
export function whileWritersAreStopped(descriptor: number, work: () => void): boolean {
  const stopped: ProcessIdentity[] = [];
  const seen = new Set<number>();
  const end = performance.now() + STOP_MS;
  try {
    // A process that was started in the meantime inherited its descriptors from a known one. The next round finds it.
    for (let found = newWriters(descriptor, seen); ; found = newWriters(descriptor, seen)) {
      stopped.push(...found.filter(stop));
      while (!found.every(isStill)) {
        if (performance.now() > end) return false;
        pause();
      }
      if (found.length === 0) break;
    }
    work();
    return true;
  } finally {
    for (const process of stopped) signalProcess(process, "SIGCONT");
  }
}

/** False for a process that was stopped already. */
function stop(writer: ProcessIdentity): boolean {
  return !isStill(writer) && signalProcess(writer, "SIGSTOP");
}

function isStill({ pid }: ProcessIdentity): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((task) => STILL.test(stateOf(pid, task)));
  } catch {
    // The process is gone.
    return true;
  }
}

function stateOf(pid: number, task: string): string {
  try {
    const text = readFileSync(`/proc/${pid}/task/${task}/stat`, "latin1");
    return text.charAt(text.lastIndexOf(")") + 2);
  } catch {
    return "X";
  }
}

/** The writers among the processes that were not seen before. */
function newWriters(descriptor: number, seen: Set<number>): ProcessIdentity[] {
  const file = fstatSync(descriptor);
  const writers: ProcessIdentity[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid || seen.has(pid)) continue;
    seen.add(pid);
    const identity = writes(pid, file) ? identify(pid) : undefined;
    if (identity !== undefined) writers.push(identity);
  }
  return writers;
}

function writes(pid: number, { dev, ino }: { dev: number; ino: number }): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((number) => {
      const open = statSync(`/proc/${pid}/fd/${number}`, { throwIfNoEntry: false });
      return open?.ino === ino && open.dev === dev && isForWriting(pid, number);
    });
  } catch {
    // The process is gone, or is a kernel thread.
    return false;
  }
}

function isForWriting(pid: number, number: string): boolean {
  const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/${pid}/fdinfo/${number}`, "latin1"))?.[1];
  return (Number.parseInt(flags ?? "0", 8) & WRITING) !== 0;
}

const clock = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the whole process on purpose: nothing else may run before `work` is done. */
function pause(): void {
  Atomics.wait(clock, 0, 0, LOOK_MS);
}
