/**
 * Schemas of the runner's answers. A runner is trusted with its own runs and nothing else: every text and list has a bound,
 * but for the output of a program, which is bounded with the whole answer.
 */
import { z } from "zod";
import { pausedResponseSchema, programmaticResultFields } from "./runner-programmatic.ts";

/** Handles of files and sessions, versions, and other texts that no program writes. */
const shortText = z.string().max(16 * 1024);
/** More characters than a name in a workspace can have. */
const fileName = z.string().max(8192);
/** Inputs, and as many outputs as can be configured. */
const MAX_FILES = 20_000;

export const runnerFileSchema = z.object({
  id: shortText,
  name: fileName,
  storage_session_id: shortText,
  modified_from: z.object({ id: shortText, storage_session_id: shortText }).optional(),
  inherited: z.boolean().optional(),
  entity_id: shortText.optional(),
  /** Of a stored output. */
  size: z.number().int().nonnegative().optional(),
  content_type: z.string().max(255).optional(),
});
export type RunnerFile = z.infer<typeof runnerFileSchema>;

export const omittedReasonSchema = z.enum(["count", "size", "total_size", "name", "type", "upload_failed"]);
export type OmittedReason = z.infer<typeof omittedReasonSchema>;

export const runStatusSchema = z.enum(["TO", "ML", "OL", "EL", "SG", "CE"]);
export type RunStatus = z.infer<typeof runStatusSchema>;

/** A limit that the program met without being ended by it, and what it is. */
export const reachedLimitSchema = z.object({
  limit: z.enum([
    "processes",
    "file_size",
    "workspace_bytes",
    "workspace_files",
    "tmp_bytes",
    "tmp_files",
    "shm_bytes",
    "shm_files",
  ]),
  value: z.number().int(),
});
export type ReachedLimit = z.infer<typeof reachedLimitSchema>;

/** The limits that a run had, after the request's were lowered to the service's. */
export const usedLimitsSchema = z
  .object({
    run_timeout_ms: z.number().int().meta({ description: "Wall time of the run in ms.", example: 60_000 }),
    memory_bytes: z
      .number()
      .int()
      .meta({ description: "Memory of all its processes in bytes.", example: 536_870_912 }),
  })
  .meta({
    id: "UsedLimits",
    description: "The limits that were used: a request's are lowered to the service's.",
  });
export type UsedLimits = z.infer<typeof usedLimitsSchema>;

/** What an answer says of limits that were met and of files that are not in `files`; each only when there is something to say. */
export const reportFields = {
  limits_reached: z
    .array(reachedLimitSchema)
    .optional()
    .meta({ description: "Limits that the program met without being ended by them." }),
  deleted_files: z.array(z.string()).optional(),
  files_omitted: z.array(z.object({ name: z.string(), reason: omittedReasonSchema })).optional(),
  files_omitted_count: z.number().int().optional(),
  artifact_delivery: z
    .object({
      code: z.literal("artifact_delivery_failed"),
      status: z.enum(["partial", "failed"]),
      attempted: z.number().int(),
      delivered: z.number().int(),
      failed: z.number().int(),
    })
    .optional(),
};

/** Body of the runner's 200 answer. Times in milliseconds, memory in bytes. */
export const executeResponseSchema = z.object({
  session_id: shortText,
  stdout: z.string(),
  stderr: z.string(),
  files: z.array(runnerFileSchema).max(MAX_FILES),
  code: z.number().int(),
  signal: shortText.nullable(),
  message: shortText.nullable(),
  status: runStatusSchema.nullable(),
  wall_time: z.number(),
  cpu_time: z.number(),
  memory: z.number().int(),
  language: shortText,
  version: shortText,
  limits: usedLimitsSchema,
  timings: z.object({ setup_ms: z.number(), run_ms: z.number(), collect_ms: z.number() }),
  session_state_persisted: z.boolean(),
  session_state_restore_failed: z.boolean(),
  ...reportFields,
  deleted_files: z.array(fileName).max(MAX_FILES).optional(),
  files_omitted: z
    .array(z.object({ name: fileName, reason: omittedReasonSchema }))
    .max(MAX_FILES)
    .optional(),
  ...programmaticResultFields,
});
export type ExecuteResponse = z.infer<typeof executeResponseSchema>;

/** A programmatic round ends with a result or with a pause. */
export const roundResponseSchema = z.union([pausedResponseSchema, executeResponseSchema]);
export type RoundResponse = z.infer<typeof roundResponseSchema>;
