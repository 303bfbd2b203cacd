/** Settings for tests that send more requests than one caller may: the limits per caller are moved out of the way. */
export const OPEN_LIMITS = {
  MAX_REQUESTS: "100000",
  UPLOAD_MAX_REQUESTS: "100000",
  DOWNLOAD_MAX_REQUESTS: "100000",
  FETCH_MAX_REQUESTS: "100000",
  SVC_MAX_CONCURRENT_EXECUTIONS: "100000",
} as const;
