/**
 * Runs programs in guests: leases a slot and a guest, sets the guest's clock, sends the run to its runner, and reads the answer as untrusted. A
 * guest whose run failed, was cancelled or took too long is ended. A guest whose program is paused is kept for that program.
 */

import {
  deadlinesFor,
  type ExecuteResponse,
  type ExecutionOutcome,
  factsOfAnswer,
  type PausedResponse,
  type ResumeRequest,
  type RoundResponse,
  ServiceError,
} from "@svc/contracts";
import { limitsFor } from "@svc/runner/admission/limits";
import type { Admitted } from "@svc/runner/admission/manifest";
import type { Slots } from "@svc/runner/admission/slots";
import type { Runtimes } from "@svc/runner/execution/runtimes";
import type { Call } from "@svc/runner/execution/types";
import type { CountedExecution, RunnerMetrics } from "@svc/runner/metrics";
import type { ProgramRegistry } from "@svc/runner/programmatic/program-registry";
import type { Runs } from "@svc/runner/routes";
import { countFault, isCancelled } from "@svc/runner/run-line";
import { type Config, DeadlineSignal } from "@svc/service-kit";
import type { LimitOverrides } from "@svc/service-kit/config/limit-overrides";
import { type AnswerBounds, answerBounds, askRound } from "@svc/worker/runner/round";
import { z } from "zod";
import type { Guest } from "../guests/guest.ts";
import { type Lease, PAUSE_REST_MS, type Pool } from "../guests/pool.ts";
import { asServiceError, ofGuest } from "./guest-errors.ts";
import { HeldGuest } from "./held-guest.ts";

const MIB = 2 ** 20;
/** Longest wait for the guest's answer whether it still keeps its program. */
const LOOK_MS = 2000;
const MAX_HEALTH_BYTES = 64 * 1024;
const healthSchema = z.object({ slots: z.object({ paused: z.number() }) });

export interface GuestRunsDeps {
  config: Config;
  overrides: LimitOverrides;
  runtimes: Runtimes;
  slots: Slots;
  pool: Pool<Guest>;
  programs: ProgramRegistry<HeldGuest>;
  runMetrics: RunnerMetrics;
}

interface Round {
  path: string;
  request: object;
  wallMs: number;
  call: Call;
  counted: CountedExecution;
  principal: string;
  /** Undefined for a program without tools. */
  program: HeldGuest | undefined;
}

export class GuestRuns implements Runs {
  readonly #deps: GuestRunsDeps;
  readonly #bounds: AnswerBounds;

  constructor(deps: GuestRunsDeps) {
    this.#deps = deps;
    this.#bounds = answerBounds(deps.config);
  }

  execute({ request, principal }: Admitted, call: Call): Promise<RoundResponse> {
    const { config, overrides, runtimes, programs, runMetrics } = this.#deps;
    const { ptc } = request;
    const find = ptc == null ? "find" : "findProgrammatic";
    const { language } = runtimes[find](request.language, request.version ?? "*");
    const { wallMs } = limitsFor(config, overrides, { ...request, language });
    const counted = runMetrics.began(language, call.trace);
    const memoryBytes = config.LAUNCHER_RAM_MIB * MIB;
    const program =
      ptc == null
        ? undefined
        : new HeldGuest({
            executionId: ptc.execution_id,
            principal,
            language,
            counted,
            memoryBytes,
            round: ptc.round,
          });
    if (program !== undefined) programs.begin(program);
    const path = "/api/v2/execute";
    return this.#round({ path, request, wallMs, call, counted, principal, program });
  }

  resume(request: ResumeRequest, call: Call): Promise<RoundResponse> {
    const { config, overrides, programs } = this.#deps;
    const { execution_id, round } = request.ptc;
    const program = programs.take(execution_id, round);
    const { language, counted, principal } = program;
    const { wallMs } = limitsFor(config, overrides, { language, run_timeout: request.run_timeout });
    counted.resumed(call.trace);
    const path = `/api/v2/executions/${execution_id}/resume`;
    return this.#round({ path, request, wallMs, call, counted, principal, program });
  }

  discard(executionId: string): boolean {
    return this.#deps.programs.discard(executionId);
  }

  async #round(round: Round): Promise<RoundResponse> {
    const { call, counted, program, wallMs } = round;
    const { config, programs } = this.#deps;
    // The deadline of the guest's runner ends earlier, and the worker's later.
    const limitMs = deadlinesFor(wallMs, config).runner + config.JOB_WAIT_GRACE_MS / 2;
    const within = new DeadlineSignal(call.signal, limitMs);
    try {
      const signal = program === undefined ? within.signal : AbortSignal.any([within.signal, program.killed]);
      return await this.#leased(round, signal);
    } catch (error) {
      if (program?.lease !== undefined && isBusy(error) && !call.signal.aborted) {
        counted.paused();
        programs.keep(program);
        throw error;
      }
      program?.kill(error);
      if (program !== undefined) programs.end(program);
      countFault(counted, error, call.signal);
      if (within.isLate) throw new ServiceError("deadline_exceeded", undefined, { cause: error });
      if (isCancelled(call.signal)) throw call.signal.reason;
      throw asServiceError(error);
    } finally {
      within.end();
    }
  }

  async #leased(round: Round, signal: AbortSignal): Promise<RoundResponse> {
    const { counted, program, principal } = round;
    const { slots, pool } = this.#deps;
    const release = await slots.lease(signal, { goesOn: program?.lease !== undefined });
    try {
      counted.enter("setup");
      const lease = program?.lease ?? (await pool.take(principal, signal));
      try {
        return await this.#ask(round, lease, signal);
      } catch (error) {
        lease.fail("failed");
        throw error;
      }
    } finally {
      release();
    }
  }

  async #ask(round: Round, lease: Lease<Guest>, signal: AbortSignal): Promise<RoundResponse> {
    const { path, request, wallMs, call, counted, program } = round;
    const isHeld = program?.lease !== undefined;
    program?.uses(lease);
    if (isHeld) {
      lease.goOn();
      program.round += 1;
    }
    signal.throwIfAborted();
    await lease.guest.update().catch((cause: unknown) => {
      throw new ServiceError(isHeld ? "execution_not_found" : "sandbox_execution_failed", undefined, {
        cause,
      });
    });
    counted.runs(wallMs);
    const { execution_manifest: _, ...body } = request as { execution_manifest?: unknown };
    const answer = await askRound(isHeld ? lease.guest.held : lease.guest.runs, {
      path,
      body: JSON.stringify(body),
      requestId: call.requestId,
      signal,
      trace: call.trace?.context,
      tell: call.tell,
      bounds: this.#bounds,
    }).catch((error: unknown) => {
      throw ofGuest(error);
    });
    return "paused" in answer ? this.#paused(answer, round, lease) : this.#over(answer, round, lease);
  }

  #over(answer: ExecuteResponse, { counted, program }: Round, lease: Lease<Guest>): RoundResponse {
    if (program !== undefined) this.#deps.programs.end(program);
    // The cast holds, because the answer is not a pause.
    counted.ended(factsOfAnswer(answer).outcome as ExecutionOutcome);
    lease.over();
    return answer;
  }

  /** The guest keeps its program, unless PTC_MODE=replay runs every round from the top. */
  #paused(answer: PausedResponse, { counted, program }: Round, lease: Lease<Guest>): RoundResponse {
    const { config, programs } = this.#deps;
    if (program === undefined) throw new Error("a program without tools is paused");
    counted.paused();
    program.pausedAtMs = performance.now();
    lease.pause();
    programs.keep(program);
    if (config.PTC_MODE === "replay") programs.discard(program.executionId);
    else
      setTimeout((round) => void this.#look(program, round), PAUSE_REST_MS - LOOK_MS, program.round).unref();
    return { ...answer, runner_url: config.SANDBOX_ADVERTISED_URL };
  }

  /**
   * Asks the guest whether it still keeps its program. Its runner gives up a program whose calls are refused, and tells nobody. After
   * PAUSE_REST_MS the guest is stopped and could not even notice a refusal, so this comes before.
   */
  async #look(program: HeldGuest, round: number): Promise<void> {
    const isPaused = () => program.round === round && program.onUnanswerable !== undefined;
    if (!isPaused()) return;
    const signal = AbortSignal.timeout(LOOK_MS);
    const call = { method: "GET", path: "/api/v2/health", signal, maxBytes: MAX_HEALTH_BYTES } as const;
    const told = healthSchema.safeParse(await program.lease?.guest.held.json(call).catch(() => undefined));
    if (told.success && told.data.slots.paused === 0 && isPaused()) program.onUnanswerable?.();
  }
}

/** No slot was free: a paused program stays where it is. */
const isBusy = (error: unknown) => error instanceof ServiceError && error.code === "runner_busy";
