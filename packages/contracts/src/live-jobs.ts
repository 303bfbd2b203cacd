/**
 * Jobs outside of the queues: a paused program goes on, or is removed. What is lost of them is made otherwise by the API
 * that waits, so they travel by lists in Redis without the queue's durability. A job is one hash: `state` (below), `job`
 * while it waits, `worker` and `at` (ms since 1970) while it is taken, `result` when it has ended. All keys expire.
 */
import type { Job } from "./messages.ts";

export type LiveJobState = "waiting" | "taken" | "ended" | "withdrawn";

export const LIVE_JOB_PREFIX = "svc:live:job:";

export function isLiveJob({ resume, discard }: Pick<Job, "resume" | "discard">): boolean {
  return resume !== undefined || discard !== undefined;
}

/** Redis key of the ids of jobs that wait, oldest first. */
export function liveWaitingKey(kind: string): string {
  return `svc:live:${kind}:waiting`;
}

/** Redis key of the ids of jobs that are in work, each with the time (ms since 1970) when its worker counts as dead. */
export function liveTakenKey(kind: string): string {
  return `svc:live:${kind}:taken`;
}

export function liveJobKey(jobId: string): string {
  return LIVE_JOB_PREFIX + jobId;
}
