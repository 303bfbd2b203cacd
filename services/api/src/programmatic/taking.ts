/**
 * Takes in what a caller has answered to a pause, once: it is stored before anything is done with it, so that another
 * replica can finish the round. Where this process knows the program, that is one step with the taking of the request's
 * entry, and is done by the request that gets the entry alone.
 */
import { ServiceError, type ToolResult } from "@svc/contracts";
import type { Config } from "@svc/service-kit";
import type { OwnEntry } from "../once/once.ts";
import type { KnownProgram } from "./known-programs.ts";
import type { ProgrammaticMetrics } from "./metrics.ts";
import type { Program, Progress } from "./program.ts";
import type { Change, Known, Programs } from "./programs.ts";
import { type Answered, checkPending, digestOf, historyBytes, outcomesOf } from "./results.ts";
import type { Continuation } from "./token.ts";

export interface TakingDeps {
  config: Config;
  programs: Programs;
  metrics: ProgrammaticMetrics;
  /** Life of a program while a round of it is made. */
  roundLifeMs: number;
}

/** A program whose next round has its results. */
export interface Taken {
  program: Program;
  known: Known;
}

export class Taking {
  readonly answered: readonly Answered[];
  /** Of the results: the same for the same ones. */
  readonly digest: string;
  readonly #deps: TakingDeps;
  readonly #id: string;
  readonly #round: number;
  readonly #results: readonly ToolResult[];
  #taken: Taken | undefined;

  constructor(deps: TakingDeps, { executionId, round }: Continuation, results: readonly ToolResult[]) {
    this.#deps = deps;
    this.#id = executionId;
    this.#round = round;
    this.#results = results;
    this.answered = outcomesOf(results);
    this.digest = digestOf(results);
  }

  /** Takes the entry, and the results in if nothing speaks against it. Undefined: the store must be looked at first. */
  begin(entry: OwnEntry): Promise<boolean> | undefined {
    const copy = this.#deps.programs.takeCopy(this.#id);
    const change = copy && this.#presumed(copy.known);
    return change && this.#begin(entry, copy, change);
  }

  async #begin(entry: OwnEntry, { program }: KnownProgram, change: Change): Promise<boolean> {
    const { isTaken, known } = await this.#deps.programs.takeAndAdvance(this.#id, change, entry);
    if (known !== undefined) this.#taken = { program, known };
    return isTaken;
  }

  /** With the entry: takes the results in, unless that was done. Those of another try must be the same. */
  async finish(): Promise<Taken> {
    if (this.#taken !== undefined) return this.#taken;
    const { programs } = this.#deps;
    const [known, program] = await Promise.all([programs.progress(this.#id), programs.program(this.#id)]);
    if (known?.progress.status !== "paused" || known.progress.round !== this.#round) {
      throw new ServiceError("execution_expired");
    }
    const { taken } = known.progress;
    if (taken !== undefined) {
      if (taken.digest !== this.digest) throw new ServiceError("continuation_conflict");
      return { program, known };
    }
    const to = await programs.advance(
      this.#id,
      counted(this.#deps.metrics, () => this.#change(known)),
    );
    if (to === undefined) throw new ServiceError("execution_cancelled");
    return { program, known: to };
  }

  /** The change that a copy allows; undefined: the store has to be looked at first. */
  #presumed(known: Known): Change | undefined {
    const { status, round, taken } = known.progress;
    if (status !== "paused" || round !== this.#round || taken !== undefined) return undefined;
    try {
      return this.#change(known);
    } catch {
      return undefined;
    }
  }

  #change(known: Known): Change {
    const { config, roundLifeMs } = this.#deps;
    const { progress } = known;
    checkPending(
      this.#results,
      progress.waiting.map(({ call_id }) => call_id),
    );
    const history_bytes = historyBytes(progress.history_bytes, this.answered, {
      maxResultBytes: config.PTC_MAX_RESULT_BYTES,
      maxHistoryBytes: config.PTC_MAX_HISTORY_BYTES,
    });
    const outcomes = new Map(this.answered.map(({ call_id, outcome }) => [call_id, outcome]));
    const answers = progress.waiting.flatMap(({ call_id, at }) => {
      const outcome = outcomes.get(call_id);
      return outcome === undefined ? [] : [{ at, outcome }];
    });
    const mode = modeOf(progress, config);
    const to: Progress = { ...progress, history_bytes, taken: { digest: this.digest, mode, tries: 1 } };
    return { from: known, to, answers, lifeMs: roundLifeMs };
  }
}

export type Mode = "live" | "replay";

/** How the next round of a paused program is made. */
export function modeOf({ runner_url, paused_at }: Progress, config: Config): Mode {
  const isThere = runner_url !== undefined && Date.now() - paused_at < config.TOOL_CALL_REQUEST_TIMEOUT;
  return isThere ? "live" : "replay";
}

const OVERSIZE = { tool_result_too_large: "result", tool_history_too_large: "history" } as const;

function counted<T>(metrics: ProgrammaticMetrics, check: () => T): T {
  try {
    return check();
  } catch (error) {
    const code = (error as ServiceError).code as keyof typeof OVERSIZE;
    if (Object.hasOwn(OVERSIZE, code)) metrics.oversize.inc({ kind: OVERSIZE[code] });
    throw error;
  }
}
