/** Metrics of persistent sessions. A worker that keeps no sessions has none. */
import { counter, histogram, type Registry } from "@svc/service-kit";

/** What became of a session's state, as the run's answer reports it: docs/metrics.md. */
export type StateOutcome = "saved" | "unchanged" | "conflict" | "restore_failed" | "not_saved";

export interface SessionMetrics {
  /** Counts a session's run that has its answer. */
  answered: (outcome: StateOutcome) => void;
  /** Records the size of a new state that is now current. */
  stored: (bytes: number) => void;
}

export function sessionMetrics(registry: Registry): SessionMetrics {
  const total = counter(registry, "svc_session_state_total");
  const bytes = histogram(registry, "svc_session_state_bytes");
  return { answered: (outcome) => total.inc({ outcome }), stored: (size) => bytes.observe(size) };
}
