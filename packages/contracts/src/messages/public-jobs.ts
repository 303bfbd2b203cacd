/** Schemas of the job routes (contract section 18.2). A job is an execution that no caller waits for. */
import { z } from "zod";
import { idSchema } from "../ids.ts";
import { errorBodySchema, execResponseSchema } from "./public-exec.ts";

/** The longest time that a request may wait for the end of a job. */
export const MAX_JOB_WAIT_MS = 30_000;

const time = (description: string, example: string) => z.string().meta({ description, example });
const jobId = idSchema.meta({ description: "Id of the job.", example: "Vq3xN8sT0_mJ-4rLw2Kdz" });

export const createdJobSchema = z
  .object({
    job_id: jobId,
    status: z.literal("queued").meta({ description: "Always the same.", example: "queued" }),
  })
  .meta({ id: "CreatedJob", description: "The program will be run; nobody waits for it." });
export type CreatedJob = z.infer<typeof createdJobSchema>;

const summaryFields = {
  job_id: jobId,
  status: z.enum(["queued", "running", "completed", "failed", "cancelled"]).meta({
    description: "A program that fails or times out has completed its job; a job fails by the service.",
    example: "completed",
  }),
  language: z.string().meta({ description: "Language of its program.", example: "python" }),
  created_at: time("When it was made.", "2026-11-20T09:00:00.000Z"),
  started_at: time("When a worker took it up.", "2026-11-20T09:00:00.100Z").optional(),
  ended_at: time("When it ended.", "2026-11-20T09:00:01.300Z").optional(),
};

export const jobSummarySchema = z
  .object(summaryFields)
  .meta({ id: "JobSummary", description: "A job of the caller." });

export const keptJobSchema = z
  .object({
    ...summaryFields,
    result: execResponseSchema
      .optional()
      .meta({ description: "Of a completed job: what /v1/exec would have answered." }),
    error: errorBodySchema
      .optional()
      .meta({ description: "Of a failed or cancelled job: what /v1/exec would have answered." }),
  })
  .meta({ id: "Job", description: "A job of the caller, and how it ended." });
export type PublicJob = z.infer<typeof keptJobSchema>;

export const jobListSchema = z
  .object({
    jobs: z.array(jobSummarySchema).meta({ description: "The newest first, at most 100." }),
    next_cursor: z.string().optional().meta({
      description: "Send it as `cursor` for the next page; absent on the last one.",
      example: "MTc2NDE1LkE",
    }),
  })
  .meta({ id: "JobList", description: "Jobs of the caller." });

export const jobIdSchema = z.object({ id: jobId });
