/**
 * Waits until the system takes work: GET /v1/ready is 200, which takes a canary run through queue, worker and jail.
 * Otherwise says which component is not there, shows the end of its log, and what to do.
 */
import { join } from "node:path";
import type { ComponentName } from "./components.ts";
import type { Instance } from "./instance.ts";
import { httpAnswers } from "./probes.ts";
import { Problem } from "./problem.ts";
import { logPath, tailOf } from "./supervisor/logs.ts";
import { type ComponentState, readState } from "./supervisor/state.ts";
import { sleep } from "./system/process.ts";
import { type Note, printable } from "./terminal.ts";

const READY_TIMEOUT_S = 60;
const POLL_MS = 40;
const NOTE_AFTER_MS = 1000;
const TAIL_LINES = 8;
const MAX_LINE = 300;
/** A component that came this often to nothing will not come. */
const HOPELESS_RESTARTS = 4;
/** The exit code of a component whose configuration is not valid. */
const CONFIGURATION_EXIT = "exit code 78";

export interface ReadyOptions {
  note: Note;
  /** Ends the wait: the system is about to end. */
  signal?: AbortSignal;
}

export async function waitReady(instance: Instance, { note, signal }: ReadyOptions): Promise<void> {
  const seconds = Number(process.env.SVC_READY_TIMEOUT || READY_TIMEOUT_S);
  if (!(seconds > 0)) throw new Problem("SVC_READY_TIMEOUT must be a number of seconds");
  const end = performance.now() + seconds * 1000;
  let noted = performance.now();
  let lastReason = "";
  for (;;) {
    const reason = await httpAnswers(`${instance.url}/v1/ready`);
    if (reason === undefined) return;
    if (signal?.aborted) throw new Problem("ended before it was ready");
    const hopeless = readState(instance.runDir)?.components.find(isHopeless);
    if (hopeless !== undefined)
      throw await diagnose(instance, `the ${hopeless.name} does not start`, hopeless.name);
    if (performance.now() > end) {
      throw await diagnose(instance, `not ready after ${seconds} s: the API ${reason}`);
    }
    if (reason !== lastReason && performance.now() - noted > NOTE_AFTER_MS) {
      note(`waiting: the API ${reason}`);
      noted = performance.now();
      lastReason = reason;
    }
    await sleep(POLL_MS);
  }
}

function isHopeless(component: ComponentState): boolean {
  return component.lastExit === CONFIGURATION_EXIT || component.restarts >= HOPELESS_RESTARTS;
}

const HEALTH: Partial<Record<ComponentName, string>> = {
  api: "/v1/ready",
  worker: "/ready",
  runner: "/api/v2/health",
  "file-server": "/ready",
  "tool-call-server": "/health",
  "egress-gateway": "/health",
};

/** One line per component: undefined when it is well, else what is wrong. */
export async function componentHealth(
  instance: Instance,
  components: readonly ComponentState[],
): Promise<[ComponentName, string | undefined][]> {
  return Promise.all(
    components.map(async (component): Promise<[ComponentName, string | undefined]> => {
      const { name } = component;
      if (component.process === undefined) {
        const ended = component.lastExit === undefined ? "" : `: it ended with ${component.lastExit}`;
        return [name, `is not running${ended}`];
      }
      const path = HEALTH[name];
      if (path === undefined) return [name, undefined];
      return [
        name,
        await httpAnswers(`http://127.0.0.1:${instance.ports[name as keyof Instance["ports"]]}${path}`),
      ];
    }),
  );
}

/** With a culprit only that one is shown: the others merely wait for it. */
async function diagnose(instance: Instance, message: string, culprit?: ComponentName): Promise<Problem> {
  const components = readState(instance.runDir)?.components ?? [];
  const health = await componentHealth(instance, components);
  const lines: string[] = [];
  for (const [name, reason] of health) {
    if (reason === undefined || (culprit !== undefined && culprit !== name)) continue;
    lines.push(`${name} ${reason}`);
    for (const line of tailOf(logPath(instance.logsDir, name), TAIL_LINES)) {
      lines.push(`    ${printable(line.slice(0, MAX_LINE))}`);
    }
  }
  lines.push("", `Logs: ${join(instance.logsDir, "*.log")}. ./svc doctor checks this machine.`);
  return new Problem(message, lines.join("\n"));
}
