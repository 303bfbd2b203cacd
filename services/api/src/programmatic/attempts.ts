/**
 * One try of one round, as a job in the queue: the paused program goes on, or it is run from the top and fed what is
 * recorded. Says how the round ended; every fault is a ServiceError.
 */
import { type JobResult, type PausedResponse, pausedResponseSchema, ServiceError } from "@svc/contracts";
import type { JobProducer, UnsentJob } from "@svc/job-queue";
import type { Config, Counter, Log } from "@svc/service-kit";
import { answerOf } from "../exec/answer.ts";
import type { EndedRound } from "./answers.ts";
import type { Program } from "./program.ts";
import { type Answered, smallAnswers } from "./results.ts";
import type { ToolSessions } from "./tool-sessions.ts";

/** `grantId`: of the calls, where this attempt has got a new one. */
export type RoundEnd = ({ paused: PausedResponse } | { ended: EndedRound }) & {
  grantId?: string;
};

export interface Try {
  program: Program;
  /** The round that is made, counted from 1. */
  round: number;
  /** Counted from 1 in each round. */
  number: number;
  requestId: string;
  signal: AbortSignal;
}

export interface AttemptsDeps {
  config: Config;
  log: Log;
  jobs: JobProducer;
  sessions: ToolSessions;
  submitted: Counter<"language">;
}

export class Attempts {
  readonly #config: Config;
  readonly #submitted: Counter<"language">;
  readonly #jobs: JobProducer;
  readonly #sessions: ToolSessions;
  readonly #log: Log;

  constructor({ config, log, jobs, sessions, submitted }: AttemptsDeps) {
    this.#submitted = submitted;
    this.#config = config;
    this.#log = log;
    this.#jobs = jobs;
    this.#sessions = sessions;
  }

  /** Runs the program from the top. `calls`: how many are recorded, `runMs`: what they took. */
  async fromTop(one: Try, { calls, runMs }: { calls: number; runMs: number }): Promise<RoundEnd> {
    const { program, round } = one;
    const { JOB_TIMEOUT, PTC_MAX_CALLS } = this.#config;
    const job = this.#jobOf(one, Math.min(program.run_timeout + Math.ceil(runMs), JOB_TIMEOUT));
    // A job that another process of ours has queued goes on with the session that it was given. A first round is nobody else's.
    if (round > 1 && (await this.#jobs.exists(job))) return endOf(await this.#jobs.run(job, one.signal));
    const { callback, opened } = this.#sessions.open(program, one.requestId);
    // A first call waits for its session; it does not where there is that of an earlier attempt.
    if (round > 1 || one.number > 1) await opened;
    job.ptc = {
      mode: calls > 0 ? "replay" : "live",
      execution_id: program.execution_id,
      round,
      tools_json: JSON.stringify(program.tools),
      callback,
      hash_seed: program.hash_seed,
      max_calls: PTC_MAX_CALLS - calls,
    };
    this.#submitted.inc({ language: program.language });
    const grantId = callback.grant_id;
    try {
      return { ...(await this.#runBeside(opened, job, one.signal, { first: calls > 0 })), grantId };
    } catch (error) {
      // Who closes the session must not be overtaken by its opening.
      await opened.catch(() => undefined);
      // With the store away nobody knows; who asks again may find it running.
      const isOver = !(error instanceof ServiceError) || error.code !== "store_unavailable";
      if (isOver) this.#sessions.revoke(grantId, one.requestId);
      throw error;
    }
  }

  /**
   * Lets the frozen program go on. Answers that are small travel with its job; others, and those after which calls still wait,
   * are handed to the tool call server while the job is on its way. `waiting`: how many calls wait, these included.
   */
  async goOn(
    one: Try,
    from: { runnerUrl: string; runMs: number; answered: readonly Answered[]; waiting: number },
  ): Promise<RoundEnd> {
    const { program } = one;
    const left = Math.max(1, this.#config.JOB_TIMEOUT - Math.floor(from.runMs));
    const job = withoutSource(this.#jobOf(one, Math.min(program.run_timeout, left)));
    const answers = smallAnswers(from.answered);
    job.resume = {
      runner_url: from.runnerUrl,
      round: one.round,
      answered_call_ids: from.answered.map(({ call_id }) => call_id),
      answers,
    };
    this.#submitted.inc({ language: program.language });
    if (answers?.length === from.waiting)
      return endOf(await this.#jobs.run(job, one.signal, { first: true }));
    const handOver = this.#sessions.answer(program.execution_id, from.answered, one.requestId);
    return this.#runBeside(handOver, job, one.signal, { first: true });
  }

  /** Runs a job while something is done without which it must not succeed: a failure of that cancels the job. */
  async #runBeside(
    needed: Promise<unknown>,
    job: UnsentJob,
    left: AbortSignal,
    options: { first: boolean },
  ): Promise<RoundEnd> {
    const stop = new AbortController();
    const done = needed.catch((error: unknown) => {
      stop.abort(error);
      throw error;
    });
    const signal = AbortSignal.any([left, stop.signal]);
    const [result] = await Promise.all([this.#jobs.run(job, signal, options), done]);
    return endOf(result);
  }

  /** Has a frozen program killed, in the background; one that is not found lapses on its runner. */
  discard(program: Program, runnerUrl: string, requestId: string): void {
    const signal = new AbortController().signal;
    const one = { program, round: 0, number: 0, requestId, signal };
    const job = withoutSource(this.#jobOf(one, program.run_timeout));
    job.discard = { runner_url: runnerUrl };
    this.#jobs.run(job, signal, { first: true }).catch((error: Error) => {
      this.#log.warn({ err: error.message, request_id: requestId }, "a frozen program could not be removed");
    });
  }

  #jobOf({ program, round, number, requestId }: Try, runTimeout: number): UnsentJob {
    const { execution_id, session_id, principal, output_namespace, language, version, code, args, files } =
      program;
    return {
      v: 1,
      request_id: requestId,
      execution_id,
      job_id: `${execution_id}.${round}.${number}`,
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
      run_timeout: runTimeout,
      enqueued_at: Date.now(),
    };
  }
}

/** A paused program has been given its source, its arguments and its input. */
function withoutSource({ stdin: _s, ...job }: UnsentJob): UnsentJob {
  return { ...job, code: "", args: [] };
}

function endOf(result: JobResult): RoundEnd {
  const answer = answerOf(result);
  if (answer.paused !== true) return { ended: answer as EndedRound };
  const parsed = pausedResponseSchema.safeParse(answer);
  if (!parsed.success) throw new ServiceError("internal_error", undefined, { cause: parsed.error });
  return { paused: parsed.data };
}
