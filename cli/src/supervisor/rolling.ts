/**
 * Restarts processes one after the other. Each one finishes what it has accepted and becomes ready again before the next one
 * stops. Components retry what they ask of it in the meantime.
 */
import type { Instance } from "../instance.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";
import { componentHealth, isHopeless } from "../readiness.ts";
import { suggestion } from "../suggestion.ts";
import { startAgain } from "../svc-line.ts";
import { sleep } from "../system/process.ts";
import { COMBINED, type ComponentName, componentsIn, runsIn, type ServiceProcess } from "../topology.ts";
import type { Child } from "./child.ts";
import type { RestartEvent } from "./control.ts";
import { logPath } from "./logs.ts";

/** The order is also safe for an upgrade: a new component understands what the older ones after it send. */
const ORDER: readonly ServiceProcess[] = [
  "file-server",
  "tool-call-server",
  "egress-gateway",
  "runner",
  "launcher",
  "worker",
  "api",
  "combined",
];
const POLL_MS = 40;

/** Names that a person may give on the command line. */
export const RESTARTABLE: readonly ServiceProcess[] = ORDER;

/** The processes to restart, in order. `component`: the name of a process or of a component in it; undefined: all. */
export function restartPlan(running: readonly ComponentName[], component?: string): ServiceProcess[] {
  const processes = ORDER.filter((name) => running.includes(name));
  if (component === undefined) return processes;
  if (component === "jaild" || component === "redis" || component === "supervisor") {
    throw new Problem(
      `${component} is not restarted alone: ${component === "supervisor" ? "all components are its own" : "running programs depend on it"}`,
      `${startAgain()}; data and files stay`,
    );
  }
  const chosen = processes.filter((name) => runsIn(name, component as ComponentName));
  if (chosen.length > 0) return chosen;
  const names = processes.flatMap((name) => (name === "combined" ? [name, ...COMBINED] : [name]));
  const near = suggestion(component, names);
  throw new Problem(
    `no component ${component} is running${near === undefined ? "" : `; did you mean ${near}?`}`,
    `Components: ${names.join(", ")}`,
    USAGE_EXIT_CODE,
  );
}

export interface Rolling {
  instance: Instance;
  /** Time that a component has to finish what it has accepted. */
  graceMs: number;
  readyMs: number;
  /** Whether the whole copy is stopping. */
  isStopping: () => boolean;
  tell: (event: RestartEvent) => void;
}

export async function restartAll(children: readonly Child[], rolling: Rolling): Promise<void> {
  for (const child of children) await restartOne(child, rolling);
}

async function restartOne(child: Child, rolling: Rolling): Promise<void> {
  const { tell, isStopping, graceMs } = rolling;
  const { name } = child.component;
  tell({ process: name, phase: "stopping" });
  await child.stop(graceMs * componentsIn(name).length);
  if (isStopping()) throw endedMeanwhile();
  tell({ process: name, phase: "starting" });
  child.startAgain();
  await ready(child, rolling);
  tell({ process: name, phase: "ready" });
}

async function ready(child: Child, { instance, readyMs, isStopping }: Rolling): Promise<void> {
  const { name } = child.component;
  const before = child.state.restarts;
  const end = performance.now() + readyMs;
  for (;;) {
    const [unwell] = (await componentHealth(instance, [child.state])).filter(
      ([, reason]) => reason !== undefined,
    );
    if (unwell === undefined) return;
    if (isStopping()) throw endedMeanwhile();
    const { state } = child;
    if (performance.now() > end || isHopeless({ ...state, restarts: state.restarts - before })) {
      const [component, reason] = unwell;
      throw new Problem(
        `the ${component} is not ready after its restart: ${reason}`,
        `See ${logPath(instance.logsDir, component)}. The components after ${name} were not restarted.`,
      );
    }
    await sleep(POLL_MS);
  }
}

const endedMeanwhile = () => new Problem("everything was ended before the restart was done");
