/**
 * Schemas of the runner's answers. A runner is trusted with its own runs only, so every text and list has a bound.
 * The output of a program is the exception: the limit of the whole answer bounds it.
 */
import { z } from "zod";
import { droppedVariablesSchema } from "../sessions.ts";
import { pausedResponseSchema, programmaticResultFields } from "./runner-programmatic.ts";
import { usedLimitsSchema } from "./used-limits.ts";

/** For handles, versions and other texts that no program writes. */
const shortText = z.string().max(16 * 1024);
/** Longer than any file name in a workspace. */
const fileName = z.string().max(8192);
/** Enough for all inputs and the largest configurable number of outputs. */
const MAX_FILES = 20_000;

export const runnerFileSchema = z.object({
  id: shortText,
  name: fileName,
  storage_session_id: shortText,
  modified_from: z.object({ id: shortText, storage_session_id: shortText }).optional(),
  inherited: z.boolean().optional(),
  entity_id: shortText.optional(),
  /** `size` and `content_type` are present for stored outputs. */
  size: z.number().int().nonnegative().optional(),
  content_type: z.string().max(255).optional(),
});
export type RunnerFile = z.infer<typeof runnerFileSchema>;

export const omittedReasonSchema = z.enum([
  "count",
  "size",
  "total_size",
  "name",
  "type",
  "quota",
  "upload_failed",
]);
export type OmittedReason = z.infer<typeof omittedReasonSchema>;

export const runStatusSchema = z.enum(["TO", "ML", "OL", "EL", "SG", "CE"]);
export type RunStatus = z.infer<typeof runStatusSchema>;

/** Limits that a program can reach without being ended, as jaild reports them. The order is that of their numbers on jaild's socket. */
export const REACHED_LIMITS = [
  "processes",
  "workspace_bytes",
  "workspace_files",
  "tmp_bytes",
  "tmp_files",
  "shm_bytes",
  "shm_files",
] as const;

/** A limit that the program reached without being ended by it, and the value of that limit. */
export const reachedLimitSchema = z.object({
  limit: z
    .enum([...REACHED_LIMITS, "file_size"])
    .meta({ description: "Which limit, see docs/limits.md.", example: "processes" }),
  value: z.number().int().meta({ description: "What it is: a number or bytes.", example: 256 }),
});
export type ReachedLimit = z.infer<typeof reachedLimitSchema>;

/** Optional fields of an answer about reached limits and about files that are not in `files`. */
export const reportFields = {
  limits_reached: z
    .array(reachedLimitSchema)
    .optional()
    .meta({ description: "Limits that the program met without being ended by them." }),
  deleted_files: z
    .array(z.string())
    .optional()
    .meta({
      description: "Paths of stored inputs that the program removed or renamed.",
      example: ["old.csv"],
    }),
  files_omitted: z
    .array(
      z.object({
        name: z.string().meta({ description: "Path under /mnt/data.", example: "huge.bin" }),
        reason: omittedReasonSchema.meta({
          description: "What kept it from being stored, see docs/limits.md.",
          example: "size",
        }),
      }),
    )
    .optional()
    .meta({
      description:
        "Up to 100 of the files that are not in `files`; absent where none of them is known by name.",
    }),
  files_omitted_count: z
    .number()
    .int()
    .optional()
    .meta({ description: "How many files are not in `files`.", example: 1 }),
  artifact_delivery: z
    .object({
      code: z
        .literal("artifact_delivery_failed")
        .meta({ description: "Always the same.", example: "artifact_delivery_failed" }),
      status: z
        .enum(["partial", "failed"])
        .meta({ description: "Whether any file could be stored.", example: "partial" }),
      attempted: z.number().int().meta({ description: "Files that were to be stored.", example: 3 }),
      delivered: z.number().int().meta({ description: "Files that were stored.", example: 2 }),
      failed: z.number().int().meta({ description: "Files that could not be stored.", example: 1 }),
    })
    .optional()
    .meta({ description: "Only when storing a file failed." }),
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
  /** Present when the state persists. `unchanged`: the run did not change the workspace and stored nothing. `size`: stored bytes. */
  session_snapshot: z.object({ unchanged: z.boolean(), size: z.number().int().nonnegative() }).optional(),
  session_state_dropped: droppedVariablesSchema,
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
