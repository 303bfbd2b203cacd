/** How jobs get to the workers and what can be known of them there. */
import type { Job, JobResult, ServiceError } from "@svc/contracts";

export type Seen =
  | { state: "gone" | "waiting" }
  /** ms since 1970, by the clock of a worker. */
  | { state: "started"; at: number }
  | { state: "ended"; result: JobResult };

export interface JobWay {
  /** How often to look for an answer whose notice was lost. */
  readonly pollMs: number;
  /** What a job means to its caller that is gone. */
  readonly lost: () => ServiceError;
  /** A job that is known already is left as it is. `first`: ahead of the jobs that wait. */
  send: (job: Job, options: { first: boolean }) => Promise<void>;
  look: (id: string) => Promise<Seen>;
  /** Takes a job back before it starts; otherwise says when it has started. */
  withdraw: (id: string) => Promise<number | undefined>;
  /** Ends a job, whatever it does. */
  cancel: (id: string) => Promise<void>;
}
