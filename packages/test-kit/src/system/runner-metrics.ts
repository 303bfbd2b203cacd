/** What the runner of a system says about its executions, from its metrics. */
import type { System } from "./system.ts";

type Copy = Pick<System, "instance">;

/** Executions that run now, or are paused now. */
export async function activeExecutions(system: Copy, state: "running" | "paused"): Promise<number> {
  return sum(system, new RegExp(`^svc_sandbox_active_executions\\{state="${state}"\\} (\\d+)$`, "gm"));
}

/** Executions in this language that have ended, however. */
export async function endedExecutions(system: Copy, language: string): Promise<number> {
  return sum(
    system,
    new RegExp(`^svc_sandbox_executions_total\\{language="${language}"[^}]*\\} (\\d+)$`, "gm"),
  );
}

/** Large inputs that came from a copy on the runner. */
export async function inputsFromCopies(system: Copy): Promise<number> {
  return sum(system, /^svc_runner_input_cache_hits_total (\d+)$/gm);
}

/** Programs that began warm. */
export async function warmStarts(system: Copy): Promise<number> {
  return sum(system, /^svc_sandbox_starts_total\{start="warm"\} (\d+)$/gm);
}

/** Jails of this zygote that wait. */
export async function warmJails(system: Copy, zygote: string): Promise<number> {
  const waiting = new RegExp(
    `^svc_sandbox_warm_jails\\{zygote="${zygote}",number="waiting"\\} (\\d+)$`,
    "gm",
  );
  return sum(system, waiting);
}

async function sum({ instance }: Copy, lines: RegExp): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${instance.ports.runner}/metrics`);
  return [...(await response.text()).matchAll(lines)].reduce((total, [, count]) => total + Number(count), 0);
}
