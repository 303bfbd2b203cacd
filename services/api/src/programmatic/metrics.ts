/** Counters for programs with tools. Their names are part of the metrics contract with operators. */
import { type Counter, counter, type Registry } from "@svc/service-kit";

export type ResumeOutcome = "paused" | "completed" | "error" | "client_error" | "retryable_error";

export interface ProgrammaticMetrics {
  continuations: Counter<"mode" | "outcome">;
  contention: Counter<never>;
  oversize: Counter<"kind">;
}

export function programmaticMetrics(registry: Registry): ProgrammaticMetrics {
  return {
    continuations: counter(registry, "svc_ptc_replay_continuations_total"),
    contention: counter(registry, "svc_ptc_replay_lock_contention_total"),
    oversize: counter(registry, "svc_ptc_replay_state_oversize_total"),
  };
}
