/** What the host's kernel shows of jaild: processes, control groups, namespaces, descriptors. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { slow } from "./slowness.ts";

const stat = (pid: number) => statOf(`/proc/${pid}/stat`);

function statOf(path: string): { parent: number; state: string } | undefined {
  try {
    const text = readFileSync(path, "utf8");
    const [state = "", parent = "0"] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { parent: Number(parent), state };
  } catch {
    return undefined;
  }
}

export function processes(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

export function childrenOf(pid: number | undefined): number[] {
  if (pid === undefined || pid <= 1) throw new Error(`not a process of a test: ${pid}`);
  return processes().filter((candidate) => stat(candidate)?.parent === pid);
}

const status = (pid: number) => {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
};

/** In a pid namespace below the tests' own. */
const isInJail = (text: string) => /^NSpid:\t\d+\t\d+$/m.test(text);

/** Under a system call policy besides the one of all processes of jaild: the last step of a jail's preparation. */
export const isFiltered = (pid: number) => {
  const text = status(pid);
  return isInJail(text) && Number(/^Seccomp_filters:\t(\d+)$/m.exec(text)?.[1]) > 1;
};

/** A process that runs Python outside of all jails. */
export const isZygote = (pid: number) => {
  const text = status(pid);
  return /^Name:\tpython3$/m.test(text) && !isInJail(text);
};

/** Everything below the process. */
export function descendants(pid: number | undefined): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendants(child)]);
}

/** Whether any thread of the process lives: until the last one has ended, its sockets are open. */
export function isAlive(pid: number): boolean {
  const state = stat(pid)?.state;
  return state === "Z"
    ? threadsOf(pid).some((thread) => (statOf(`/proc/${pid}/task/${thread}/stat`)?.state ?? "Z") !== "Z")
    : state !== undefined;
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/**
 * Kills one process. Anything but the number of a process that a test can have started is an error: 0 would be the
 * tests' own process group, -1 everything, 1 the machine (kill(2)).
 */
export function killProcess(pid: number | undefined): void {
  if (pid === undefined || !Number.isSafeInteger(pid) || pid <= 1)
    throw new Error(`no process to kill: ${pid}`);
  process.kill(pid, "SIGKILL");
}

export function descriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Directories called `name` in any mounted control group hierarchy. */
export function groupsNamed(name: string): string[] {
  const points = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(" ")[4] ?? "");
  const own = readFileSync("/proc/self/cgroup", "utf8").match(/^0::(.*)$/m)?.[1] ?? "/";
  return points
    .flatMap((point) => [join(point, name), join(point, own, name)])
    .filter((path, index, all) => all.indexOf(path) === index && existsSync(path));
}

/** A file of slot 0's control group, in whichever hierarchy has it. */
export function groupFile(group: string, file: string, slot = 0): string {
  const path = groupsNamed(group)
    .flatMap((own) => [join(own, `slot-${slot}`, file), join(own, "jails", `slot-${slot}`, file)])
    .find((candidate) => existsSync(candidate));
  if (path === undefined) throw new Error(`no ${file} in the groups of ${group}`);
  return readFileSync(path, "utf8");
}

/** Whether a slot's control group is or will be frozen. */
export function groupIsFrozen(group: string, slot = 0): boolean {
  try {
    return groupFile(group, "freezer.state", slot) !== "THAWED\n";
  } catch {
    return groupFile(group, "cgroup.freeze", slot) !== "0\n";
  }
}

/** CPU time of everything in a slot's control group. */
export function groupCpuUs(group: string, slot = 0): number {
  try {
    return Number(groupFile(group, "cpuacct.usage", slot)) / 1000;
  } catch {
    return Number(/usage_usec (\d+)/.exec(groupFile(group, "cpu.stat", slot))?.[1]);
  }
}

/** How often a process was given the processor because something woke it. */
export function wakeups(pid: number): number {
  return Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

/** Distinct namespaces of a kind that one of the processes is in. */
export function namespaces(kind: "net" | "mnt" | "pid" | "user", pids: readonly number[]): Set<string> {
  const found = new Set<string>();
  for (const pid of pids) {
    try {
      found.add(readlinkSync(`/proc/${pid}/ns/${kind}`));
    } catch {
      // it ended meanwhile
    }
  }
  return found;
}

/** Waits for a condition; throws when it does not come true in this time of an ordinary machine. */
export async function until(condition: () => boolean, what: string, ms = 20_000): Promise<void> {
  const deadline = performance.now() + slow(ms);
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
