/** Settings for tests that send more requests than one caller may: the limits per caller are moved out of the way. */
export const OPEN_LIMITS = {
  MAX_REQUESTS: "100000",
  UPLOAD_MAX_REQUESTS: "100000",
  DOWNLOAD_MAX_REQUESTS: "100000",
  FETCH_MAX_REQUESTS: "100000",
  SVC_MAX_CONCURRENT_EXECUTIONS: "100000",
} as const;

/** The same for programs with tools. On a machine that does other work, what a program calls at once may take a while. */
export const OPEN_PROGRAM_LIMITS = {
  ...OPEN_LIMITS,
  PTC_RESUME_MAX_REQUESTS: "100000",
  PTC_SETTLE_MAX_MS: "20000",
} as const;

/** For tests that count runs: none but their own, once the system is ready. */
export const NO_CANARY = { CANARY_INTERVAL_MS: "0" } as const;
