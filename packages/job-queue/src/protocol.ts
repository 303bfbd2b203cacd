/**
 * What producer and consumer agree on. A job is a BullMQ job of the queue of its kind. Its result is a key in Redis of its
 * own, which the consumer announces on the producer's channel: BullMQ would write a return value twice, and keep it in a stream.
 */
import type { Job, QueueKind } from "@svc/contracts";

export const QUEUE_NAMES = { python: "python-queue", other: "other-queue" } as const satisfies Record<
  QueueKind,
  string
>;

/** Redis channel on which cancellations are published: the message is the job id. */
export const CANCEL_CHANNEL = "svc:cancel";

/**
 * Where a job waits: `first`: before all jobs with a number. A number counts from 1: behind those with a smaller one, and behind those with
 * the same one that came before.
 */
export type Place = number | "first";

/** For a producer that looks late: a result whose announcement was lost, or went to another replica. */
export const RESULT_LIFE_MS = 120_000;

/** In the place of a result that its reader has taken. */
export const READ = "";

/** Redis key of a result: JSON of JobResult, or READ. */
export function resultKey(jobId: string): string {
  return `svc:result:${jobId}`;
}

/** Name of the job in its queue. */
export function jobIdOf(job: Pick<Job, "execution_id" | "job_id">): string {
  return job.job_id ?? job.execution_id;
}

/** A round of a program with tools: another replica may ask for it. */
export function isRound({ job_id }: Pick<Job, "job_id">): boolean {
  return job_id !== undefined;
}

/** Whether the job acts on a paused program. It must not start a second time: the program goes on only once. */
export function isOfPausedProgram({ resume, discard }: Pick<Job, "resume" | "discard">): boolean {
  return resume !== undefined || discard !== undefined;
}
