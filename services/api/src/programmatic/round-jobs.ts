/**
 * The only module in this folder that adds jobs to the queue. One attempt of one round is one job. The job resumes the paused program,
 * or runs it from the top with the recorded results. Returns how the round ended; every failure is a ServiceError.
 */
import {
  type CallAnswer,
  factsOfAnswer,
  type Job,
  type JobResult,
  newId,
  type PausedResponse,
  pausedResponseSchema,
  type RunFacts,
  ServiceError,
  type TraceContext,
  type UsedLimits,
} from "@svc/contracts";
import { type JobProducer, jobIdOf, type Place, ProducerStopped } from "@svc/job-queue";
import { type Config, type Counter, errorText, type Log, retry } from "@svc/service-kit";
import { answerOf } from "../exec/answer.ts";
import type { RunStream } from "../streams/run-stream.ts";
import { outcomeBytes } from "./accept-results.ts";
import type { EndedRound } from "./completion.ts";
import type { Program } from "./state.ts";
import type { ToolExchanges } from "./tool-exchanges.ts";

/** The largest total size of results that travel in the job of a resume, in bytes. */
const SMALL_BYTES = 8192;

/** `grantId`: the grant for the calls, if this attempt has a new one. */
export type RoundEnd = ({ paused: PausedResponse } | { ended: EndedRound }) & {
  grantId?: string;
};

export interface Attempt {
  program: Program;
  /** Counted from 1. */
  round: number;
  /** Counted from 1 in each round. */
  number: number;
  requestId: string;
  signal: AbortSignal;
  /** The place of its job in the queue. */
  place: Place;
  /** The trace context of the request. */
  trace?: TraceContext | undefined;
  /** Follows the program's output; absent when nobody does. */
  stream?: RunStream | undefined;
}

export interface RoundJobsDeps {
  config: Config;
  log: Log;
  jobs: JobProducer;
  exchanges: ToolExchanges;
  submitted: Counter<"language">;
}

export class RoundJobs {
  readonly #config: Config;
  readonly #submitted: Counter<"language">;
  readonly #jobs: JobProducer;
  readonly #exchanges: ToolExchanges;
  readonly #log: Log;

  constructor({ config, log, jobs, exchanges, submitted }: RoundJobsDeps) {
    this.#submitted = submitted;
    this.#config = config;
    this.#log = log;
    this.#jobs = jobs;
    this.#exchanges = exchanges;
  }

  /** Runs the program from the top. `calls`: how many calls are recorded; `runMs`: run time so far. */
  async fromTop(attempt: Attempt, { calls, runMs }: { calls: number; runMs: number }): Promise<RoundEnd> {
    const { program, round } = attempt;
    const { JOB_TIMEOUT, PTC_MAX_CALLS } = this.#config;
    const job = this.#jobOf(attempt, Math.min(program.run_timeout + Math.ceil(runMs), JOB_TIMEOUT));
    // A job that another replica queued keeps its own exchange. Only this replica queues a first round.
    if (round > 1 && (await this.#jobs.exists(job)))
      return endOf(await this.#run(job, attempt, attempt.signal, attempt.place), program);
    const { callback, opened } = this.#exchanges.open(program, attempt.requestId);
    // A call waits until an exchange is open. In a later attempt it would find the exchange of an earlier one, so this must finish first.
    if (round > 1 || attempt.number > 1) await opened;
    job.ptc = {
      mode: calls > 0 ? "replay" : "live",
      execution_id: program.execution_id,
      round,
      tools_json: JSON.stringify(program.tools),
      callback,
      hash_seed: program.hash_seed,
      // The limit may have been lowered since those calls were made.
      max_calls: Math.max(0, PTC_MAX_CALLS - calls),
    };
    this.#submitted.inc({ language: program.language });
    const grantId = callback.grant_id;
    try {
      return { ...(await this.#runBeside(opened, job, attempt, attempt.place)), grantId };
    } catch (error) {
      // The opening must be over before anything closes the exchange.
      await opened.catch(() => undefined);
      // While Redis is unreachable, or when this process stops, the job may still run, and the next request may find it.
      const isOver = !isStoreAway(error) && !(error instanceof ProducerStopped);
      if (isOver) this.#exchanges.revoke(grantId, attempt.requestId);
      throw error;
    }
  }

  /**
   * Resumes the frozen program. Small answers travel in the job. Large answers, and answers that leave calls pending, go to the tool call
   * server at the same time. `pending`: the number of pending calls, including the answered ones.
   */
  async resume(
    attempt: Attempt,
    from: { runnerUrl: string; runMs: number; answers: readonly CallAnswer[]; pending: number },
  ): Promise<RoundEnd> {
    const { program } = attempt;
    const leftMs = Math.max(1, this.#config.JOB_TIMEOUT - Math.floor(from.runMs));
    const job = withoutSource(this.#jobOf(attempt, Math.min(program.run_timeout, leftMs)));
    const answers = smallAnswers(from.answers);
    job.resume = {
      runner_url: from.runnerUrl,
      round: attempt.round,
      answered_call_ids: from.answers.map(({ call_id }) => call_id),
      answers,
    };
    this.#submitted.inc({ language: program.language });
    if (answers?.length === from.pending)
      return endOf(await this.#run(job, attempt, attempt.signal, "first"), program);
    const handOver = this.#exchanges.answer(program.execution_id, from.answers, attempt.requestId);
    return this.#runBeside(handOver, job, attempt, "first");
  }

  /** Runs a job in parallel with a request that it depends on. If that request fails, the job is cancelled. */
  async #runBeside(
    needed: Promise<unknown>,
    job: Job,
    attempt: Attempt,
    place: Place | undefined,
  ): Promise<RoundEnd> {
    const stop = new AbortController();
    const done = needed.catch((error: unknown) => {
      stop.abort(error);
      throw error;
    });
    const signal = AbortSignal.any([attempt.signal, stop.signal]);
    const [result] = await Promise.all([this.#run(job, attempt, signal, place), done]);
    return endOf(result, attempt.program);
  }

  async #run(job: Job, { stream }: Attempt, signal: AbortSignal, place?: Place): Promise<JobResult> {
    await stream?.follow(jobIdOf(job), { goesOn: job.resume !== undefined });
    return this.#jobs.run(job, signal, place);
  }

  /** Cancels a waiting or running attempt, whichever process awaits it, and even if that process is gone. */
  async cancel(executionId: string, { round, number }: Pick<Attempt, "round" | "number">): Promise<void> {
    await this.#jobs.cancel(attemptId(executionId, { round, number }));
  }

  /** Kills a frozen program in the background, as soon as a worker is free. If that fails, the program expires on its runner. */
  discard(program: Program, runnerUrl: string, requestId: string): void {
    const signal = new AbortController().signal;
    const attempt = { program, round: 0, number: 0, requestId, signal, place: "first" as const };
    const job = withoutSource(this.#jobOf(attempt, program.run_timeout));
    job.discard = { runner_url: runnerUrl };
    // Each discard has its own id, so that a program that was paused on several runners is removed from each.
    job.job_id = `${program.execution_id}.discard.${newId()}`;
    const expires = performance.now() + this.#config.TOOL_CALL_REQUEST_TIMEOUT;
    const isLater = (error: unknown) => isSaturated(error) && performance.now() < expires;
    const run = () => this.#jobs.run(job, signal, "first");
    retry(run, (error) => (isLater(error) ? 0 : undefined)).catch((error: Error) => {
      this.#log.warn({ err: errorText(error), request_id: requestId }, "discarding a paused program failed");
    });
  }

  #jobOf({ program, round, number, requestId, trace, stream }: Attempt, runTimeout: number): Job {
    const { execution_id, session_id, principal, output_namespace, language, version } = program;
    const { code, args, files, inline, env } = program;
    return {
      v: 1,
      request_id: requestId,
      execution_id,
      job_id: attemptId(execution_id, { round, number }),
      session_id,
      principal,
      output_namespace,
      language,
      version,
      code,
      args,
      ...(program.stdin === undefined ? {} : { stdin: program.stdin }),
      ...(program.run_memory_limit === undefined ? {} : { run_memory_limit: program.run_memory_limit }),
      files,
      ...(inline === undefined ? {} : { inline }),
      ...(env === undefined ? {} : { env }),
      run_timeout: runTimeout,
      ...(trace === undefined ? {} : { trace }),
      ...(stream === undefined ? {} : { events: true }),
    };
  }
}

const attemptId = (executionId: string, { round, number }: Pick<Attempt, "round" | "number">) =>
  `${executionId}.${round}.${number}`;

/** Strips what a paused program already has: source, arguments, standard input, inline files and environment. */
function withoutSource({ stdin: _s, inline: _i, env: _e, ...job }: Job): Job {
  return { ...job, code: "", args: [] };
}

const isSaturated = (error: unknown) => error instanceof ServiceError && error.code === "queue_saturated";

const isStoreAway = (error: unknown) => error instanceof ServiceError && error.code === "store_unavailable";

export function endOf(result: JobResult, { run_timeout }: Pick<Program, "run_timeout">): RoundEnd {
  const answer = answerOf(result);
  if (answer.paused !== true) return { ended: withRoundLimit(answer as EndedRound, run_timeout) };
  const parsed = pausedResponseSchema.safeParse(answer);
  if (!parsed.success) throw new ServiceError("internal_error", undefined, { cause: parsed.error });
  return { paused: withRoundLimit(parsed.data, run_timeout) };
}

/** The log fields for the end of a round. */
export function factsOfEnd(end: RoundEnd): RunFacts {
  return factsOfAnswer("paused" in end ? end.paused : end.ended);
}

/** A replay gets the run time of all rounds, but the caller sees the limit of one round. */
function withRoundLimit<Told extends { limits?: UsedLimits | undefined }>(told: Told, roundMs: number): Told {
  const { limits } = told;
  if (limits === undefined) return told;
  return { ...told, limits: { ...limits, run_timeout_ms: Math.min(limits.run_timeout_ms, roundMs) } };
}

/** The answers, if they are small enough together to travel in the job of a resume; else undefined. */
export function smallAnswers(answers: readonly CallAnswer[]): CallAnswer[] | undefined {
  const bytes = answers.reduce((sum, { outcome }) => sum + outcomeBytes(outcome), 0);
  return bytes > SMALL_BYTES ? undefined : [...answers];
}
