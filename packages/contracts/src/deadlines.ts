/**
 * The nested deadlines of one execution. Each layer ends strictly after the one inside it, so that the innermost
 * cause is the one that callers see. All values in milliseconds.
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

/** `run` is the run limit of the request after lowering to the ceilings. */
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
 * How long content that was sent may take to be stored, ms: in the store its bytes, and its record besides; and until who sent it has the
 * answer. The gateway, which is between these, waits for twice EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS.
 */
export const STORING_MS = { content: 28_000, record: 20_000, answer: 60_000 } as const;

export interface RoundSettings extends DeadlineSettings {
  JOB_TIMEOUT: number;
  JOB_QUEUE_WAIT_MS: number;
  /** In seconds. */
  TOOL_CALL_SESSION_EXPIRY: number;
}

/** Life of what belongs to a program with tools while a round is made, ms: longer than the round and the pause after it can take. */
export function roundLifeMs(settings: RoundSettings): number {
  const { JOB_TIMEOUT, JOB_QUEUE_WAIT_MS, TOOL_CALL_SESSION_EXPIRY } = settings;
  return TOOL_CALL_SESSION_EXPIRY * 1000 + deadlinesFor(JOB_TIMEOUT, settings).api + JOB_QUEUE_WAIT_MS;
}
