/** The beginning of every execution: a jail is opened, the program described, its files staged, and started. */
import type { JailRun } from "@svc/jail-client";
import { jailLimits, type RunLimits } from "../admission/limits.ts";
import type { RunGateway } from "../gateway.ts";
import { stageAll } from "../inputs/inputs.ts";
import { despiteSpoiledCopies } from "../inputs/source.ts";
import type { StagedInput } from "../outputs/outputs.ts";
import { type Program, replaced } from "./program.ts";
import type { ExecuteDeps } from "./types.ts";

export interface Launched {
  jail: JailRun;
  staged: readonly StagedInput[];
  /** Directory of the workspace that holds the compiled program; nothing in it is an output. */
  build?: string;
  /** When the request's work began and when the program was started, on the monotonic clock. */
  beganMs: number;
  startedMs: number;
}

export interface Launch {
  program: Program;
  limits: RunLimits;
  run: RunGateway;
  /** Aborted: the jail is gone. */
  life: AbortSignal;
  /** What else is in its environment, once its jail is known. */
  environment?: (jail: JailRun) => readonly string[];
  /** The last thing before the start. */
  prepare?: (jail: JailRun) => Promise<void>;
}

export function launch(what: Launch, deps: ExecuteDeps): Promise<Launched> {
  const beganMs = performance.now();
  return despiteSpoiledCopies((withCopies) => attempt(what, deps, withCopies, beganMs));
}

async function attempt(
  { program, limits, run, life, environment, prepare }: Launch,
  { config, gateway, inputs, metrics, jails }: ExecuteDeps,
  withCopies: boolean,
  beganMs: number,
): Promise<Launched> {
  const jail = await metrics.watchSetup(() => jails.open(program, life));
  try {
    jail.describe(program.argv, replaced(program.env, environment?.(jail) ?? []), jailLimits(limits));
    if (program.stdin !== undefined) await jail.stdin(program.stdin);
    const concurrency = config.SANDBOX_PRIME_CONCURRENCY;
    const staged = await stageAll(program, { gateway, inputs, withCopies, run, jail, concurrency });
    await prepare?.(jail);
    await jail.start();
    metrics.started(jail.startedWarm);
    const build = program.compile && { build: program.compile.build };
    return { jail, staged, ...build, beganMs, startedMs: performance.now() };
  } catch (error) {
    jail.close();
    throw error;
  }
}
