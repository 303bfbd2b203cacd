/** Messages in Redis between the API and the workers: the queued job, its result, and the workers' reports about runners. */
import { z } from "zod";
import { environmentSchema } from "../environment.ts";
import { idSchema } from "../ids.ts";
import { inlineJobFileSchema } from "../inline-files.ts";
import type { QueueKind } from "../languages.ts";
import { sessionHintSchema } from "../sessions.ts";
import { traceContextSchema } from "../trace-context.ts";
import { FILE_KINDS } from "./public-exec.ts";
import { answeredCallsSchema, programmaticRunSchema } from "./runner-programmatic.ts";
import { callbackSchema } from "./tool-call-server.ts";

const positive = z.number().int().positive();

/** An authorised input in a job: the caller's reference plus the metadata from storage. */
export const jobFileSchema = z.object({
  id: idSchema,
  storage_session_id: idSchema,
  name: z.string(),
  kind: z.enum(FILE_KINDS),
  resource_id: z.string().optional(),
  version: z.number().optional(),
  entity_id: z.string().optional(),
  /** `size` and `content_type` come from the storage record. */
  size: z.number().int().nonnegative().optional(),
  content_type: z.string().optional(),
});
export type JobFile = z.infer<typeof jobFileSchema>;

/**
 * A first round or a replay in the queue. The worker reads the history from Redis and gets the sealed callback token from
 * the gateway, so neither is in the job.
 */
export const programmaticJobSchema = programmaticRunSchema
  .omit({ history: true, callback_token: true })
  .extend({ callback: callbackSchema });
export type ProgrammaticJob = z.infer<typeof programmaticJobSchema>;

/** One execution in the queue. */
export const jobSchema = z.object({
  v: z.literal(1),
  request_id: z.string(),
  execution_id: idSchema,
  /** Id of the job in its queue; the execution's id when absent. Each attempt of each round has its own. */
  job_id: z.string().optional(),
  session_id: idSchema,
  principal: z.object({ tenantId: z.string(), userId: z.string() }),
  output_namespace: z.string(),
  language: z.string(),
  version: z.string(),
  code: z.string(),
  args: z.array(z.string()),
  stdin: z.string().optional(),
  run_timeout: z.number().int().positive(),
  /** In bytes; present only when the caller's plan sets it. */
  run_memory_limit: z.number().int().positive().optional(),
  files: z.array(jobFileSchema),
  inline: z.array(inlineJobFileSchema).optional(),
  /** The caller's variables, as `NAME=value`. */
  env: environmentSchema.optional(),
  /** The persistent session that the run continues: the one of this hint, or the default one of the user. */
  session: z.object({ hint: sessionHintSchema.optional() }).optional(),
  /** A program with tools: a first round or a replay. */
  ptc: programmaticJobSchema.optional(),
  /** Resumes a paused program: its runner, the round that begins, and the calls that have results. */
  resume: answeredCallsSchema.extend({ runner_url: z.string(), round: positive }).optional(),
  /** Discards a paused program on this runner, because nobody needs it any more. Runs nothing. */
  discard: z.object({ runner_url: z.string() }).optional(),
  /** Publish the program's output while it runs. */
  events: z.boolean().optional(),
  /** Present when no caller waits for the job: how long to keep its result, in ms. */
  kept: z.number().int().positive().optional(),
  /** The parent span; absent when the job is not traced. */
  trace: traceContextSchema.optional(),
});
export type Job = z.infer<typeof jobSchema>;

/** The end of a job: an answer for the client, or an error of the table. */
export type JobResult =
  | { ok: true; answer: Record<string, unknown> }
  | {
      ok: false;
      error: { code: string; status: number; message: string; details?: { path: string; problem: string }[] };
    };

/** Redis key of the installed runtimes: a JSON array of RuntimeInfo, which workers refresh. */
export const RUNTIMES_KEY = "svc:runtimes";

/** Readiness requires a successful execution through each queue that is at most this old. */
export const CANARY_MAX_AGE_MS = 60_000;

/** Redis key of the time (ms since 1970) of the last execution that went through this queue, a worker and a jail. */
export const canaryKey = (kind: QueueKind): string => `svc:canary:last-success:${kind}`;

/** What readiness says of queues without such an execution. */
export const canaryReason = (kinds: readonly QueueKind[]): string =>
  `no execution went through in the last minute (${kinds.join(", ")})`;
