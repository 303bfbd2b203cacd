/** Messages on Redis between the API and the workers: the queued job, its result, what workers say of the runner. */
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

/** An authorised input as the job carries it: the caller's reference plus what storage recorded. */
export const jobFileSchema = z.object({
  id: idSchema,
  storage_session_id: idSchema,
  name: z.string(),
  kind: z.enum(FILE_KINDS),
  resource_id: z.string().optional(),
  version: z.number().optional(),
  entity_id: z.string().optional(),
  /** As storage recorded them. */
  size: z.number().int().nonnegative().optional(),
  content_type: z.string().optional(),
});
export type JobFile = z.infer<typeof jobFileSchema>;

/**
 * What the queued job of a first round or a replay says. History is read from the store by the worker, and the callback token
 * is sealed for it.
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
  /** Name of the job in its queue; absent: the execution's id. Each attempt of each round of a program has its own. */
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
  /** Bytes, when the caller's plan sets them. */
  run_memory_limit: z.number().int().positive().optional(),
  files: z.array(jobFileSchema),
  inline: z.array(inlineJobFileSchema).optional(),
  /** `NAME=value`, of the caller. */
  env: environmentSchema.optional(),
  /** The persistent session that the run continues: the one of this hint, or the default one of the user. */
  session: z.object({ hint: sessionHintSchema.optional() }).optional(),
  /** A program with tools: a first round or a replay. */
  ptc: programmaticJobSchema.optional(),
  /** A paused program that goes on: where it is, the round that begins, and which calls have their results. */
  resume: answeredCallsSchema.extend({ runner_url: z.string(), round: positive }).optional(),
  /** A paused program that is not needed any more: where it is. Nothing is run. */
  discard: z.object({ runner_url: z.string() }).optional(),
  /** Somebody wants to read what the program writes while it runs. */
  events: z.boolean().optional(),
  /** Nobody waits for it: how it ends is kept for so long, in ms. */
  kept: z.number().int().positive().optional(),
  /** The span below which the job is traced; absent where it is not. */
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

/** Redis key of the installed runtimes, JSON array of RuntimeInfo, kept fresh by workers. */
export const RUNTIMES_KEY = "svc:runtimes";

/** Readiness needs an execution through each queue that is at most this old. */
export const CANARY_MAX_AGE_MS = 60_000;

/** Redis key of the time (ms since 1970) of the last execution that went through this queue, a worker and a jail. */
export const canaryKey = (kind: QueueKind): string => `svc:canary:last-success:${kind}`;

/** What readiness says of queues without such an execution. */
export const canaryReason = (kinds: readonly QueueKind[]): string =>
  `no execution went through in the last minute (${kinds.join(", ")})`;
