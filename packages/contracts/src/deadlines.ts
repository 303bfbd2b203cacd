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
