/**
 * Messages that tell workers of a new job, so that none of them has to wait at the store. A hint may be lost: who waits for
 * a job tells of it again, and workers look by themselves now and then.
 */
import type { QueueKind } from "./languages.ts";

export const JOB_HINTS_CHANNEL = "svc:jobs:new";

/** `queue`: in the queue of its kind. `live`: in the list of live jobs of its kind. */
export type JobPlace = "queue" | "live";

/** The message: what a new job is found by. */
export function jobHint(place: JobPlace, kind: QueueKind): string {
  return `${place}:${kind}`;
}
