/** Ends a background copy and makes sure that nothing of it is left. */
import type { Instance } from "../instance.ts";
import { Problem } from "../problem.ts";
import { findCgroups, removeCgroups } from "../system/cgroups.ts";
import { isAlive, signalProcess, sleep, waitGone } from "../system/process.ts";
import { removeLeftovers } from "./leftovers.ts";
import { type ComponentState, readStoredState, type State } from "./state.ts";

/** How long the supervisor may take to begin its stop. */
const BEGIN_TIMEOUT_MS = 45_000;
const KILL_TIMEOUT_MS = 5000;
const IN_THE_KERNEL =
  "A process waits in the kernel, for a disk for example: see dmesg, then run ./svc down again.";

/** Returns false when nothing was running. */
export async function stopBackground(instance: Instance, beginMs = BEGIN_TIMEOUT_MS): Promise<boolean> {
  const state = readStoredState(instance.runDir);
  if (state === undefined) return false;
  const { supervisor } = state;
  const wasRunning = isAlive(supervisor);
  if (wasRunning && !(await endsInOrder(instance, state, beginMs))) {
    signalProcess(supervisor, "SIGKILL");
    await waitGone(supervisor, KILL_TIMEOUT_MS);
  }
  await endComponents(state.components);
  // After an orderly stop the state file is gone with all else, and another copy may have started since.
  if (readStoredState(instance.runDir)?.supervisor.pid !== supervisor.pid) return wasRunning;
  await emptyCgroups(state.cgroup);
  removeLeftovers(instance);
  return wasRunning;
}

/** Asks the supervisor to stop. Accepted requests get the time that the settings grant. False: the supervisor hangs. */
async function endsInOrder(
  { runDir }: Instance,
  { supervisor, stopSeconds = 0 }: State,
  beginMs: number,
): Promise<boolean> {
  signalProcess(supervisor, "SIGTERM");
  if (await waitGone(supervisor, beginMs)) return true;
  const hasBegun = readStoredState(runDir)?.phase === "stopping";
  return hasBegun && (await waitGone(supervisor, stopSeconds * 1000 - beginMs));
}

/** After a supervisor was killed, the kernel ends its components. This makes sure of it. */
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
