/** Ends a background copy and makes sure that nothing of it is left. */
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import { findCgroups, removeCgroups, removeLaunchersCgroups } from "../system/cgroups.ts";
import { isAlive, signalProcess, sleep, waitGone } from "../system/process.ts";
import { type ComponentState, readStoredState, removeState } from "./state.ts";

const STOP_TIMEOUT_MS = 45_000;
const KILL_TIMEOUT_MS = 5000;
const IN_THE_KERNEL =
  "A process waits in the kernel, for a disk for example: see dmesg, then run ./svc down again.";

/** Answers false when nothing was running. */
export async function stopBackground(instance: Instance): Promise<boolean> {
  const state = readStoredState(instance.runDir);
  if (state === undefined) return false;
  const { supervisor } = state;
  const wasRunning = isAlive(supervisor);
  if (wasRunning) {
    signalProcess(supervisor, "SIGTERM");
    if (!(await waitGone(supervisor, STOP_TIMEOUT_MS))) {
      signalProcess(supervisor, "SIGKILL");
      await waitGone(supervisor, KILL_TIMEOUT_MS);
    }
  }
  await endComponents(state.components);
  await emptyCgroups(state.cgroup);
  removeLaunchersCgroups();
  removeState(instance.runDir);
  return wasRunning;
}

/** After a supervisor that was killed: the kernel ends its components, this makes sure of it. */
async function endComponents(components: readonly ComponentState[]): Promise<void> {
  for (const { name, process } of components) {
    if (process === undefined || (await waitGone(process, KILL_TIMEOUT_MS))) continue;
    signalProcess(process, "SIGKILL");
    if (!(await waitGone(process, KILL_TIMEOUT_MS)))
      throw new Problem(`${name} (pid ${process.pid}) cannot be ended`, IN_THE_KERNEL);
  }
}

async function emptyCgroups(name: string): Promise<void> {
  const end = performance.now() + KILL_TIMEOUT_MS;
  for (;;) {
    removeCgroups(name);
    const left = findCgroups(name);
    if (left.length === 0) return;
    if (performance.now() > end)
      throw new Problem(`cgroups cannot be removed: ${left.join(", ")}`, IN_THE_KERNEL);
    await sleep(50);
  }
}
