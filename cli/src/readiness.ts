/**
 * Waits until the system takes work: GET /v1/ready and the worker's /ready both answer 200, which needs a canary run through
 * queue, worker and jail. On failure it names the component that is not ready, shows the end of its log, and says what to do.
 */

import { join } from "node:path";
import { addressOf, type Instance } from "./instance.ts";
import { readyAnswers, redisAnswers, socketExists } from "./probes.ts";
import { Problem } from "./problem.ts";
import type { Environment } from "./settings.ts";
import { fileSize, logPath, readFrom, readLine } from "./supervisor/logs.ts";
import { type ComponentState, readState } from "./supervisor/state.ts";
import { svcLine } from "./svc-line.ts";
import { sleep } from "./system/process.ts";
import { standstillOf } from "./system/standstill.ts";
import { type Note, printable } from "./terminal.ts";
import { type ComponentName, componentsIn, logsOf, usesMicrovms } from "./topology.ts";

const READY_TIMEOUT_S = 60;
/** Emulated microVMs take this long to boot. */
const MICROVM_TIMEOUT_S = 600;
const POLL_MS = 40;
const NOTE_AFTER_MS = 1000;
const TAIL_LINES = 8;
const TAIL_BYTES = 64 * 1024;
const MAX_LINE = 300;
const WARN = 40;
/** A component that was restarted this often without success will not start. */
const HOPELESS_RESTARTS = 4;
/** The exit code of a component whose configuration is not valid. */
const CONFIGURATION_EXIT = "exit code 78";

export interface ReadyOptions {
  note: Note;
  /** Whether the system is stopping or has stopped, so nothing becomes ready any more. */
  isEnding: () => boolean;
}

export async function waitReady(instance: Instance, { note, isEnding }: ReadyOptions): Promise<void> {
  const seconds = readySeconds(process.env);
  const end = performance.now() + seconds * 1000;
  let noted = performance.now();
  let lastReason = "";
  for (;;) {
    const reason = await missing(instance);
    if (reason === undefined) return;
    if (isEnding()) throw new Problem("ended before it was ready");
    const hopeless = readState(instance.runDir)?.components.find(isHopeless);
    if (hopeless !== undefined)
      throw await diagnose(instance, `the ${hopeless.name} does not start`, hopeless.name);
    if (performance.now() > end) {
      throw await diagnose(instance, `not ready after ${seconds} s: ${reason}`);
    }
    if (reason !== lastReason && performance.now() - noted > NOTE_AFTER_MS) {
      note(`waiting: ${reason}`);
      noted = performance.now();
      lastReason = reason;
    }
    await sleep(POLL_MS);
  }
}

/** How long the components may take to get ready. */
export function readySeconds(caller: Environment): number {
  const seconds = Number(
    caller.SVC_READY_TIMEOUT || (usesMicrovms(caller) ? MICROVM_TIMEOUT_S : READY_TIMEOUT_S),
  );
  if (!(seconds > 0)) throw new Problem("SVC_READY_TIMEOUT must be a number of seconds");
  return seconds;
}

/**
 * Returns what is not ready. The API judges by Redis, which may hold the canary of an earlier start. A worker judges only by
 * its own canary.
 */
async function missing(instance: Instance): Promise<string | undefined> {
  const api = await readyAnswers(`${instance.url}/v1/ready`);
  if (api !== undefined) return `the API ${api}`;
  const worker = await readyAnswers(`${addressOf("worker", instance)}${HEALTH.worker}`);
  return worker && `the worker ${worker}`;
}

export function isHopeless(component: ComponentState): boolean {
  return component.lastExit === CONFIGURATION_EXIT || component.restarts >= HOPELESS_RESTARTS;
}

const HEALTH: Partial<Record<ComponentName, string>> = {
  api: "/v1/ready",
  worker: "/ready",
  runner: "/api/v2/health",
  launcher: "/api/v2/health",
  "file-server": "/ready",
  "tool-call-server": "/ready",
  "egress-gateway": "/ready",
};

/** One entry per component: undefined when it is healthy, otherwise what is wrong. */
export async function componentHealth(
  instance: Instance,
  processes: readonly ComponentState[],
): Promise<[ComponentName, string | undefined][]> {
  const healthOf = async (process: ComponentState, name: Exclude<ComponentName, "combined">) => {
    if (process.process === undefined) return `is not running${endOf(process)}`;
    return standstillOf(process.process.pid) ?? answerOf(instance, name);
  };
  return Promise.all(
    processes.flatMap((process) =>
      componentsIn(process.name).map(
        async (name): Promise<[ComponentName, string | undefined]> => [name, await healthOf(process, name)],
      ),
    ),
  );
}

function answerOf(instance: Instance, name: Exclude<ComponentName, "combined">): Promise<string | undefined> {
  if (name === "redis") return redisAnswers(instance.redisSocket);
  if (name === "jaild") return socketExists(instance.jailSocket);
  return readyAnswers(`${addressOf(name, instance)}${HEALTH[name]}`);
}

function endOf({ lastExit }: ComponentState): string {
  return lastExit === undefined ? "" : `: it ended with ${lastExit}`;
}

/** With a culprit, shows only that process, because the others merely wait for it. */
async function diagnose(instance: Instance, message: string, culprit?: ComponentName): Promise<Problem> {
  const state = readState(instance.runDir);
  const shown = (state?.components ?? []).filter(({ name }) => culprit === undefined || culprit === name);
  const lines: string[] = [];
  for (const process of shown) lines.push(...(await diagnosisOf(instance, process, state?.logStarts ?? {})));
  lines.push("", `Logs: ${join(instance.logsDir, "*.log")}. ${svcLine("doctor")} checks this machine.`);
  return new Problem(message, lines.join("\n"));
}

/** The size of each log when this start began. Earlier lines belong to earlier starts. */
type LogStarts = Readonly<Record<string, number>>;

/** What is wrong with the components of a process, each with the end of its log. Empty when all are healthy. */
async function diagnosisOf(
  instance: Instance,
  process: ComponentState,
  starts: LogStarts,
): Promise<string[]> {
  const tailIn = (name: ComponentName, leastLevel?: number) =>
    tailSince(logPath(instance.logsDir, name), starts[name] ?? 0, leastLevel);
  if (process.process === undefined) {
    const [own, ...shared] = logsOf(process.name);
    return [
      `${process.name} is not running${endOf(process)}`,
      ...tailIn(own ?? process.name),
      ...shared.flatMap((name) => tailIn(name, WARN)),
    ];
  }
  const health = await componentHealth(instance, [process]);
  return health.flatMap(([name, reason]) =>
    reason === undefined ? [] : [`${name} ${reason}`, ...tailIn(name)],
  );
}

/** The last lines of a log with at least this level that were written after `start`. */
export function tailSince(path: string, start: number, leastLevel = 0): string[] {
  const size = fileSize(path);
  // A log that is shorter than it was has been rotated.
  const text = readFrom(path, Math.max(start > size ? 0 : start, size - TAIL_BYTES));
  return text
    .split("\n")
    .filter(Boolean)
    .map(readLine)
    .filter(({ level }) => level >= leastLevel)
    .slice(-TAIL_LINES)
    .map(({ text }) => `    ${printable(text.slice(0, MAX_LINE))}`);
}
