/**
 * Schemas of POST /v1/exec and of error answers, for validation and the OpenAPI document.
 * Unknown fields are ignored; a null optional field counts as absent.
 */
import { z } from "zod";
import { argsSchema } from "../args.ts";
import { ENV_LIMITS } from "../environment.ts";
import { ID_PATTERN } from "../ids.ts";
import { INLINE_ENCODINGS } from "../inline-files.ts";
import { reportFields, runStatusSchema, usedLimitsSchema } from "./runner-answers.ts";

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

/** A file whose content comes with the request. The API checks its name and size afterwards. */
export const inlineFileSchema = z
  .object({
    name: z.string().meta({ description: "Path under /mnt/data.", example: "data/points.csv" }),
    content: z.string().meta({
      description: "At most 1 MiB; 4 MiB for all inline files of a request.",
      example: "x,y\n1,2\n",
    }),
    encoding: z
      .enum(INLINE_ENCODINGS)
      .nullish()
      .meta({ description: "How `content` is written; default `utf8`.", example: "utf8" }),
  })
  .meta({
    id: "InlineFile",
    description: "A file that the program may change. It is in the answer only when it is new or changed.",
  });

/** The entries of `files`, as they are documented. */
export const requestFilesSchema = z
  .array(z.union([fileRefSchema, inlineFileSchema]))
  .meta({ description: "Up to 256 stored or inline files, each to its own path." });

/** The variables of a program, as they are documented; environment.ts has their rules. */
export const requestEnvSchema = z.record(z.string(), z.string()).meta({
  description:
    `Environment variables of the program: at most ${ENV_LIMITS.variables}, values to 8 KiB, 64 KiB together. ` +
    "Names that begin with SVC_ or SANDBOX_ are refused. The program may start more slowly.",
  example: { API_MODE: "test" },
});

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
    files: requestFilesSchema.nullish(),
    env: requestEnvSchema.nullish(),
    run_timeout: limitMs.nullish().meta({ description: "Wall time limit of the run in ms." }),
    timeout: limitMs.nullish().meta({ description: "Alias of `run_timeout`, which wins." }),
    user_id: z.string().nullish().meta({ description: "For logs. Never an identity." }),
    runtime_session_hint: z.unknown().optional(),
    session_id: z.unknown().optional(),
    workspace_instance_id: z.unknown().optional(),
  })
  .meta({ id: "ExecRequest" });

/** The body as it is parsed: files and variables are checked one by one afterwards, files with an error code of their own. */
export const execBodySchema = execRequestSchema.extend({
  files: z.array(z.unknown()).nullish(),
  env: z.unknown().optional(),
});
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
    size: z.number().int().meta({ description: "Bytes.", example: 1024 }),
    content_type: z.string().meta({ description: "Media type, as it is stored.", example: "text/csv" }),
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
    limits: usedLimitsSchema,
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
