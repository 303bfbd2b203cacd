/** Settings of the measured copies that differ from the defaults. Every result contains them. */

export type Mode = "warm" | "cold";
export const MODES: readonly Mode[] = ["warm", "cold"];

/** Limits per caller, and at the end the slots: the same number on every machine, so that results can be compared. */
const RAISED = {
  MAX_REQUESTS: "1000000",
  PTC_RESUME_MAX_REQUESTS: "1000000",
  UPLOAD_MAX_REQUESTS: "1000000",
  DOWNLOAD_MAX_REQUESTS: "1000000",
  FETCH_MAX_REQUESTS: "1000000",
  SVC_MAX_CONCURRENT_EXECUTIONS: "1000",
  SANDBOX_MAX_PAUSED_PER_PRINCIPAL: "32",
  SANDBOX_MAX_CONCURRENT_JOBS: "8",
} as const;

export function settingsOf(mode: Mode): Record<string, string> {
  return { ...RAISED, SANDBOX_WARM_START: mode === "warm" ? "on" : "off" };
}

export const MODE_MEANING: Readonly<Record<Mode, string>> = {
  warm: "programs start in interpreters that are already there, where there are such",
  cold: "every program starts a new interpreter (SANDBOX_WARM_START=off)",
};
