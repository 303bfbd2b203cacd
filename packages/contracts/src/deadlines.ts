/**
 * The nested deadlines of one execution. Each layer ends strictly after the one inside it, so that callers see the
 * innermost cause. All values are in milliseconds.
 */
export interface DeadlineSettings {
  JOB_PRIME_ALLOWANCE_MS: number;
  JOB_POSTPROCESS_ALLOWANCE_MS: number;
  JOB_WAIT_GRACE_MS: number;
  SANDBOX_COMPILE_TIMEOUT: number;
}

export interface Deadlines {
  run: number;
  runner: number;
  worker: number;
  api: number;
}

/** `run`: the request's run limit, already lowered to the service's limits. */
export function deadlinesFor(run: number, settings: DeadlineSettings): Deadlines {
  const runner =
    run +
    settings.SANDBOX_COMPILE_TIMEOUT +
    settings.JOB_PRIME_ALLOWANCE_MS +
    settings.JOB_POSTPROCESS_ALLOWANCE_MS;
  const worker = runner + settings.JOB_WAIT_GRACE_MS;
  return { run, runner, worker, api: worker + settings.JOB_WAIT_GRACE_MS };
}

/**
 * Time limits for storing a file, in ms: `content` for its bytes in the object store, `record` for its record there, and
 * `answer` for how long the sender waits. The gateway between them waits for twice EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS.
 */
export const STORING_MS = { content: 28_000, record: 20_000, answer: 60_000 } as const;

export interface RoundSettings extends DeadlineSettings {
  JOB_TIMEOUT: number;
  JOB_QUEUE_WAIT_MS: number;
  /** In seconds. */
  TOOL_CALL_SESSION_EXPIRY: number;
}

/** Lifetime in ms of what is stored for a program with tools during a round: longer than the round and the pause after it can take. */
export function roundLifeMs(settings: RoundSettings): number {
  const { JOB_TIMEOUT, JOB_QUEUE_WAIT_MS, TOOL_CALL_SESSION_EXPIRY } = settings;
  return TOOL_CALL_SESSION_EXPIRY * 1000 + deadlinesFor(JOB_TIMEOUT, settings).api + JOB_QUEUE_WAIT_MS;
}
