/**
 * What producer and consumer agree on. A job is a BullMQ job of the queue of its kind. Its result is a key in Redis of its
 * own, which the consumer announces on the producer's channel: BullMQ would write a return value twice, and keep it in a stream.
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
  /** Redis channel of the API process that waits; absent when no process does. */
  reply_to: z.string().optional(),
  /** It starts until then, or not at all; absent when nobody waits. */
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
 * Where a job waits: `first`: before all jobs with a number. A number counts from 1: behind those with a smaller one, and behind those with
 * the same one that came before.
 */
export type Place = number | "first";

/**
 * For a producer that looks late: a result whose announcement was lost, or went to another replica. That of a further round stays for all
 * of this time, as another replica may wait for the same round, or ask for it after the first one died.
 */
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

/** A further round of a program with tools: another replica may ask for it. The first one is asked for once, as an execution is. */
export function isFurtherRound({ job_id, ptc, discard }: Pick<Job, "job_id" | "ptc" | "discard">): boolean {
  return job_id !== undefined && ptc?.round !== 1 && discard === undefined;
}

/** Whether the job acts on a paused program. It must not start a second time: the program goes on only once. */
export function isOfPausedProgram({ resume, discard }: Pick<Job, "resume" | "discard">): boolean {
  return resume !== undefined || discard !== undefined;
}

/** Whether a job that nobody waits for begins anew: its worker ends, or no runner had a slot for it. */
export function goesBack({ kept }: Pick<Job, "kept">, result: JobResult): boolean {
  return kept !== undefined && !result.ok && ["shutting_down", "queue_saturated"].includes(result.error.code);
}

/** The result of a job that was not run, or not to its end. */
export function failed(why: ErrorCode): JobResult {
  const { code, status, message } = new ServiceError(why);
  return { ok: false, error: { code, status, message } };
}
