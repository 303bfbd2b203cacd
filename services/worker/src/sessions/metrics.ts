/** Metrics of persistent sessions. A worker that keeps no sessions has none. */
import { Counter, Histogram, type Registry } from "@svc/service-kit";

/**
 * What became of a session's state, as the answer of the run says it. `saved`: a new state is current; `unchanged`: the run left what it
 * began with; `conflict`: another run ended first; `restore_failed`: the run began with an empty workspace; `not_saved`: all else, as after
 * a limit's kill, with a state that is too large or could not be stored, or in a session that was deleted meanwhile.
 */
const OUTCOMES = ["saved", "unchanged", "conflict", "restore_failed", "not_saved"] as const;
export type StateOutcome = (typeof OUTCOMES)[number];

/** From 1 KiB to 256 MiB, each four times the one before. */
const SIZE_BUCKETS = Array.from({ length: 10 }, (_, at) => 1024 * 4 ** at);

export interface SessionMetrics {
  /** A run of a session has its answer. */
  answered: (outcome: StateOutcome) => void;
  /** A new state of so many bytes is current. */
  stored: (bytes: number) => void;
}

export function sessionMetrics(registry: Registry): SessionMetrics {
  const registers = [registry];
  const total = new Counter({
    name: "svc_session_state_total",
    help: "Runs of persistent sessions that have an answer, by what became of the session's state.",
    labelNames: ["outcome"] as const,
    registers,
  });
  for (const outcome of OUTCOMES) total.inc({ outcome }, 0);
  const bytes = new Histogram({
    name: "svc_session_state_bytes",
    help: "Sizes of the states of persistent sessions that were saved, in bytes as they are stored.",
    buckets: SIZE_BUCKETS,
    registers,
  });
  return { answered: (outcome) => total.inc({ outcome }), stored: (size) => bytes.observe(size) };
}
