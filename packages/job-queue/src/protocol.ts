/**
 * The protocol between producer and consumer. A job is a BullMQ job in the queue of its kind. Its result has its own Redis key, and
 * the consumer announces it on the producer's channel. BullMQ would write a return value twice and keep it in a stream.
 */
import {
  type ErrorCode,
  type Job,
  type JobResult,
  jobSchema,
  type QueueKind,
  ServiceError,
} from "@svc/contracts";
import type { CancellationKind } from "@svc/service-kit";
import { z } from "zod";

export const QUEUE_NAMES = { python: "python-queue", other: "other-queue" } as const satisfies Record<
  QueueKind,
  string
>;

/** A job in its queue. Times are ms since 1970 by Redis's clock. */
export const queuedJobSchema = jobSchema.extend({
  enqueued_at: z.number(),
  /** Redis channel of the API process that waits for the result; absent when none waits. */
  reply_to: z.string().optional(),
  /** The job must not start after this time; absent when no process waits for it. */
  start_by: z.number().optional(),
});
export type QueuedJob = z.infer<typeof queuedJobSchema>;

/** Cancellations of jobs: the API sends the id of one whose client left. A worker that was not listening finds the mark. */
export const JOB_CANCELLATIONS = {
  channel: "svc:cancel",
  markKey: (jobId) => `svc:cancelled:${jobId}`,
  rememberedMs: 60_000,
} as const satisfies CancellationKind;

/**
 * The place of a job in its queue. `first`: before all jobs with a number. Numbers begin at 1: a job waits behind jobs with smaller
 * numbers, and behind earlier jobs with the same number.
 */
export type Place = number | "first";

/**
 * How long a result is kept, for a producer whose announcement was lost or went to another replica. The result of a further round
 * always stays this long, because another replica may wait for the same round, or ask for it after the first replica died.
 */
export const RESULT_LIFE_MS = 120_000;

/** Replaces a result that its reader has read. */
export const READ = "";

/** Redis key of a result: JSON of JobResult, or READ. */
export function resultKey(jobId: string): string {
  return `svc:result:${jobId}`;
}

/** The id of a job in its queue. */
export function jobIdOf(job: Pick<Job, "execution_id" | "job_id">): string {
  return job.job_id ?? job.execution_id;
}

/** Whether a job is a further round of a program with tools, which another replica may ask for. Nobody asks for a first round twice. */
export function isFurtherRound({ job_id, ptc, discard }: Pick<Job, "job_id" | "ptc" | "discard">): boolean {
  return job_id !== undefined && ptc?.round !== 1 && discard === undefined;
}

/** Whether the job acts on a paused program. It must not start twice, because the program can resume only once. */
export function isOfPausedProgram({ resume, discard }: Pick<Job, "resume" | "discard">): boolean {
  return resume !== undefined || discard !== undefined;
}

/** Whether a kept job goes back to the queue: its worker stops, or no runner had a slot for it. */
export function goesBack({ kept }: Pick<Job, "kept">, result: JobResult): boolean {
  return kept !== undefined && !result.ok && ["shutting_down", "queue_saturated"].includes(result.error.code);
}

/** The result of a job that was not run, or not to its end. */
export function failed(why: ErrorCode): JobResult {
  const { code, status, message } = new ServiceError(why);
  return { ok: false, error: { code, status, message } };
}
