/**
 * Schemas of POST /v1/exec and of error answers, for validation and the OpenAPI document.
 * Unknown fields are ignored; a null optional field counts as absent.
 */
import { z } from "zod";
import { argsSchema } from "../args.ts";
import { ID_PATTERN } from "../ids.ts";
import { reportFields, runStatusSchema } from "./runner-answers.ts";

export const FILE_KINDS = ["user", "agent", "skill"] as const;

export const RESOURCE_ID_PATTERN = /^[A-Za-z0-9_.:-]{1,128}$/;

/** Longer ranges mean nothing and take long to read. */
const MAX_VERSION_CHARS = 256;

export const publicId = z
  .string()
  .regex(ID_PATTERN, "must have exactly 21 characters of A-Z, a-z, 0-9, _ and -");

/** The shape of a file reference; its meaning (kinds, names, conflicts, ownership) is checked by the API afterwards. */
export const fileRefSchema = z
  .object({
    id: publicId.meta({ description: "Id of the file, as an upload or an earlier execution returned it." }),
    storage_session_id: publicId.meta({ description: "Storage session that holds the file's bytes." }),
    name: z.string().meta({ description: "Path under /mnt/data. It alone decides where the file appears." }),
    kind: z.enum(FILE_KINDS).nullish(),
    resource_id: z.string().nullish(),
    version: z.number().nullish(),
    entity_id: z.string().nullish(),
  })
  .meta({ id: "FileRef" });
export type FileRef = z.infer<typeof fileRefSchema>;

/** A limit in ms: any whole number from 1; what is too large is lowered, so it need not be a safe integer. */
const limitMs = z
  .number()
  .min(1)
  .refine(Number.isInteger, "must be a whole number")
  .meta({ type: "integer" });

export const execRequestSchema = z
  .object({
    code: z.string().meta({ description: "The program. May be empty." }),
    lang: z
      .string()
      .nullish()
      .meta({ description: "Language, any alias, any case. Required (or its alias `language`)." }),
    language: z.string().nullish().meta({ description: "Alias of `lang`; `lang` wins." }),
    version: z
      .string()
      .max(MAX_VERSION_CHARS)
      .nullish()
      .meta({ description: "`*` or a semver range; the newest installed match is used." }),
    args: argsSchema.nullish(),
    stdin: z.string().nullish(),
    files: z
      .array(fileRefSchema)
      .nullish()
      .meta({ description: "Up to 256 references, each to its own path." }),
    run_timeout: limitMs.nullish().meta({ description: "Wall time limit of the run in ms." }),
    timeout: limitMs.nullish().meta({ description: "Alias of `run_timeout`, which wins." }),
    user_id: z.string().nullish().meta({ description: "For logs. Never an identity." }),
    runtime_session_hint: z.unknown().optional(),
    session_id: z.unknown().optional(),
    workspace_instance_id: z.unknown().optional(),
  })
  .meta({ id: "ExecRequest" });

/** The body as it is parsed: references are checked one by one afterwards, with an error code of their own. */
export const execBodySchema = execRequestSchema.extend({ files: z.array(z.unknown()).nullish() });
export type ExecBody = z.infer<typeof execBodySchema>;

export const outputFileSchema = z
  .object({
    id: publicId,
    name: z.string(),
    storage_session_id: publicId,
    kind: z.enum(FILE_KINDS),
    resource_id: z.string().optional(),
    version: z.number().optional(),
    modified_from: z.object({ id: publicId, storage_session_id: publicId }).optional(),
    inherited: z.literal(true).optional(),
    entity_id: z.string().optional(),
  })
  .meta({ id: "OutputFile" });
export type OutputFile = z.infer<typeof outputFileSchema>;

export const execResponseSchema = z
  .object({
    session_id: publicId,
    stdout: z.string(),
    stderr: z.string(),
    files: z.array(outputFileSchema),
    code: z.number().int(),
    signal: z.string().nullable(),
    message: z.string().nullable(),
    status: runStatusSchema.nullable(),
    wall_time: z.number().meta({ description: "Wall time of the run in ms." }),
    cpu_time: z.number().meta({ description: "User plus system time of all its processes in ms." }),
    memory: z.number().int().meta({ description: "Peak memory in bytes." }),
    language: z.string(),
    version: z.string(),
    timings: z.object({
      queue_ms: z.number(),
      setup_ms: z.number(),
      run_ms: z.number(),
      collect_ms: z.number(),
    }),
    ...reportFields,
  })
  .meta({ id: "ExecResponse" });
export type ExecResponse = z.infer<typeof execResponseSchema>;

export const errorBodySchema = z
  .object({
    error: z.string().meta({ description: "Stable code." }),
    message: z.string(),
    request_id: z.string(),
    details: z.array(z.object({ path: z.string(), problem: z.string() })).optional(),
    retry_after_seconds: z.int().min(1).optional().meta({ description: "With rate_limited only." }),
    retry_after: z.int().min(1).optional().meta({ description: "The same as retry_after_seconds." }),
  })
  .meta({ id: "Error" });
