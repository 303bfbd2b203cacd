/**
 * The rounds of programs with tools, each from a start or resume to the next answer. A round is made live when the paused
 * program is still there, and from the top when it is not; the caller sees no difference. What a caller has answered is
 * stored before anything is done with it, so that another replica can finish the round.
 */
import {
  deadlinesFor,
  type ErrorCode,
  type ProgrammaticResponse,
  ServiceError,
  type ToolResult,
} from "@svc/contracts";
import type { Config, Log } from "@svc/service-kit";
import type { OwnEntry } from "../once/once.ts";
import type { Attempts, RoundEnd } from "./attempts.ts";
import type { Before, Ends } from "./ends.ts";
import type { ProgrammaticMetrics } from "./metrics.ts";
import type { Program, Progress } from "./program.ts";
import type { Change, Known, Programs } from "./programs.ts";
import type { Answered } from "./results.ts";
import { type Mode, modeOf, Taking } from "./taking.ts";
import type { Continuation } from "./token.ts";

export interface RoundsDeps {
  config: Config;
  log: Log;
  programs: Programs;
  attempts: Attempts;
  ends: Ends;
  metrics: ProgrammaticMetrics;
}

/** A resume, and the results that came with it. Its answer is kept in its entry. */
interface Resumed {
  program: Program;
  answered: readonly Answered[];
  requestId: string;
  cancelled: AbortSignal;
  entry: OwnEntry;
}

/** What a resume is made with. */
export interface Resuming {
  requestId: string;
  cancelled: AbortSignal;
  onMode: (mode: Mode) => void;
}

/** A broken run is made once more from the top. */
const MOST_FROM_TOP = 2;

/** Faults that leave the frozen program where it is. */
const NEVER_STARTED: ReadonlySet<ErrorCode> = new Set(["queue_saturated"]);
/** Faults that another try would not mend, or may not. */
const FINAL: ReadonlySet<ErrorCode> = new Set([
  "execution_cancelled",
  "execution_timeout",
  "store_unavailable",
  "input_unavailable",
  "internal_error",
  ...NEVER_STARTED,
]);

export class Rounds {
  readonly #deps: RoundsDeps;

  constructor(deps: RoundsDeps) {
    this.#deps = deps;
  }

  /** The first round. Aborting the signal cancels the program. */
  async start(program: Program, requestId: string, signal: AbortSignal): Promise<ProgrammaticResponse> {
    for (let number = 1; ; number++) {
      try {
        const one = { program, round: 1, number, requestId, signal };
        const end = await this.#deps.attempts.fromTop(one, { calls: 0, runMs: 0 });
        return await this.#finish(program, {}, end, requestId);
      } catch (error) {
        const code = error instanceof ServiceError ? error.code : undefined;
        const broken = code === "sandbox_execution_failed";
        if (broken && number < MOST_FROM_TOP && !signal.aborted) continue;
        this.#deps.ends.failed(program, requestId);
        signal.throwIfAborted();
        throw broken || code === "internal_error" ? infrastructure(error, program) : error;
      }
    }
  }

  /** The results of a pause, to be taken in. */
  taking(continuation: Continuation, results: readonly ToolResult[]): Taking {
    const { config, programs, metrics } = this.#deps;
    return new Taking({ config, programs, metrics, roundLifeMs: this.#roundLifeMs }, continuation, results);
  }

  /** The next round: the results are taken in and the program goes on. `onMode` says how. */
  async resume(
    taking: Taking,
    entry: OwnEntry,
    { requestId, cancelled, onMode }: Resuming,
  ): Promise<ProgrammaticResponse> {
    const { program, known } = await taking.finish();
    const { answered } = taking;
    try {
      return await this.#makeRound({ program, answered, requestId, cancelled, entry }, known, onMode);
    } catch (error) {
      cancelled.throwIfAborted();
      throw infrastructure(error, program);
    }
  }

  async #makeRound(
    resumed: Resumed,
    first: Known,
    onMode: (mode: Mode) => void,
  ): Promise<ProgrammaticResponse> {
    const { program, requestId, cancelled, entry } = resumed;
    let known = first;
    for (let fromTop = 0; ; ) {
      const { taken } = known.progress;
      if (taken === undefined) throw new ServiceError("internal_error");
      if (taken.failed)
        known = await this.#tryAgain(program.execution_id, known, modeOf(known.progress, this.#deps.config));
      const mode = known.progress.taken?.mode ?? "replay";
      onMode(mode);
      if (mode === "replay") fromTop++;
      try {
        const end = await this.#attempt(resumed, known.progress);
        return await this.#finish(program, { known, entry }, end, requestId);
      } catch (error) {
        cancelled.throwIfAborted();
        const code = error instanceof ServiceError ? error.code : "internal_error";
        if (code === "state_too_large") throw error;
        this.#deps.log.warn({ request_id: requestId, mode, err: error }, "a round broke");
        known = await this.#failed(program.execution_id, known, code);
        const again = mode === "live" || (code === "sandbox_execution_failed" && fromTop < MOST_FROM_TOP);
        if (FINAL.has(code) || !again) throw error;
      }
    }
  }

  #attempt(
    { program, answered, requestId, cancelled: signal }: Resumed,
    { taken, runner_url, run_ms, calls, round, waiting }: Progress,
  ): Promise<RoundEnd> {
    const { attempts } = this.#deps;
    const one = { program, round: round + 1, number: taken?.tries ?? 1, requestId, signal };
    return taken?.mode === "live" && runner_url !== undefined
      ? attempts.goOn(one, { runnerUrl: runner_url, runMs: run_ms, answered, waiting: waiting.length })
      : attempts.fromTop(one, { calls, runMs: run_ms });
  }

  /** Notes that a try is over, so that the next one is not taken for it. A program that broke is not there any more. */
  #failed(id: string, known: Known, code: ErrorCode): Promise<Known> {
    const { taken, ...progress } = known.progress;
    if (taken === undefined) return Promise.resolve(known);
    const to: Progress = { ...progress, taken: { ...taken, failed: true } };
    if (!NEVER_STARTED.has(code)) delete to.runner_url;
    return this.#advance(id, { from: known, to });
  }

  #tryAgain(id: string, known: Known, mode: Mode): Promise<Known> {
    const { taken, ...progress } = known.progress;
    if (taken === undefined) return Promise.resolve(known);
    const { failed: _f, ...rest } = taken;
    const to: Progress = { ...progress, taken: { ...rest, mode, tries: taken.tries + 1 } };
    return this.#advance(id, { from: known, to });
  }

  async #advance(id: string, change: Pick<Change, "from" | "to">): Promise<Known> {
    const done = await this.#deps.programs.advance(id, { ...change, lifeMs: this.#roundLifeMs });
    if (done === undefined) throw new ServiceError("execution_cancelled");
    return done;
  }

  /** While a round is made, everything outlives it. */
  get #roundLifeMs(): number {
    const { ends, config } = this.#deps;
    return ends.lifeMs + deadlinesFor(config.JOB_TIMEOUT, config).api + config.JOB_QUEUE_WAIT_MS;
  }

  async #finish(
    program: Program,
    before: Before,
    end: RoundEnd,
    requestId: string,
  ): Promise<ProgrammaticResponse> {
    const { ends, attempts } = this.#deps;
    if ("ended" in end) return ends.ended(program, before, end, requestId);
    try {
      return await ends.paused(program, before, end, requestId);
    } catch (error) {
      // It cannot be kept, so it cannot go on.
      if (error instanceof ServiceError && error.code === "state_too_large") {
        attempts.discard(program, end.paused.runner_url, requestId);
      }
      throw error;
    }
  }
}

/** Faults of ours after the program had started say whose execution it was. */
function infrastructure(error: unknown, { session_id }: Program): unknown {
  if (!(error instanceof ServiceError) || error.status < 500) return error;
  return new ServiceError(error.code, error.message, {
    status: error.status === 500 ? 502 : error.status,
    ...(error.headers === undefined ? {} : { headers: error.headers }),
    ...(error.details === undefined ? {} : { details: error.details }),
    extra: { ...error.extra, status: "error", error_type: "infrastructure", session_id },
    cause: error,
  });
}
