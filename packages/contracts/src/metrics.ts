/** Bucket borders of the histograms, in seconds. */
export const HTTP_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const;
export const JOB_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300] as const;
/** Stages of an execution take from parts of a millisecond to minutes. */
export const STAGE_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
] as const;

/** Outcomes of `svc_sandbox_executions_total`. */
export const EXECUTION_OUTCOMES = [
  "success",
  "program_error",
  "timeout",
  "memory_limit",
  "output_limit",
  "compile_error",
  "cancelled",
  "bad_request",
  "manifest_error",
  "execution_error",
] as const;

export type ExecutionOutcome = (typeof EXECUTION_OUTCOMES)[number];
