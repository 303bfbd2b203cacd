/** Counters of programs that are resumed, as operators know them from the contract of metrics. */
import { Counter, type Registry } from "@svc/service-kit";

export type ResumeOutcome = "paused" | "completed" | "error" | "client_error" | "retryable_error";

export interface ProgrammaticMetrics {
  continuations: Counter<"mode" | "outcome">;
  contention: Counter<string>;
  oversize: Counter<"kind">;
}

export function programmaticMetrics(registry: Registry): ProgrammaticMetrics {
  const registers = [registry];
  return {
    continuations: new Counter({
      name: "svc_ptc_replay_continuations_total",
      help: "Resumes of programs with tools, by how the program went on and what came of it.",
      labelNames: ["mode", "outcome"] as const,
      registers,
    }),
    contention: new Counter({
      name: "svc_ptc_replay_lock_contention_total",
      help: "Resumes that met another one of the same pause in flight.",
      registers,
    }),
    oversize: new Counter({
      name: "svc_ptc_replay_state_oversize_total",
      help: "Refusals because of size: of the stored state, of all results, of one result.",
      labelNames: ["kind"] as const,
      registers,
    }),
  };
}
