/**
 * Schemas of POST /v1/exec and of error answers, for validation and the OpenAPI document.
 * Unknown fields are ignored; a null optional field counts as absent.
 */
import { z } from "zod";
import { argsSchema } from "../args.ts";
import { ENV_LIMITS } from "../environment.ts";
import { ID_PATTERN } from "../ids.ts";
import { INLINE_ENCODINGS } from "../inline-files.ts";
import { quotaSchema } from "../quota.ts";
import { droppedVariablesSchema } from "../sessions.ts";
import { reportFields, runStatusSchema } from "./runner-answers.ts";
import { usedLimitsSchema } from "./used-limits.ts";

export const FILE_KINDS = ["user", "agent", "skill"] as const;

export const RESOURCE_ID_PATTERN = /^[A-Za-z0-9_.:-]{1,128}$/;

/** Longer version ranges are useless and slow to parse. */
const MAX_VERSION_CHARS = 256;

export const publicId = z
  .string()
  .regex(ID_PATTERN, "must have exactly 21 characters of A-Z, a-z, 0-9, _ and -");

const fileId = publicId.meta({
  description: "Id of the file, as an upload or an earlier execution returned it.",
  example: "V1StGXR8_Z5jdHi6B-myT",
});
const storageSession = publicId.meta({
  description: "Storage session that holds the file's bytes.",
  example: "kd83HtQmZ0_4vYcPa7-Rn",
});
const fileKind = z.enum(FILE_KINDS);

/** The shape of a file reference; its meaning (kinds, names, conflicts, ownership) is checked by the API afterwards. */
export const fileRefSchema = z
  .object({
    id: fileId,
    storage_session_id: storageSession,
    name: z.string().meta({
      description: "Path under /mnt/data. It alone decides where the file appears.",
      example: "data/points.csv",
    }),
    kind: fileKind.nullish().meta({ description: "Whose file it is; default `user`.", example: "user" }),
    resource_id: z.string().nullish().meta({
      description: "Required for agent and skill: 1 to 128 of `A-Z a-z 0-9 _ . : -`. Not read for user.",
      example: "agent-7",
    }),
    version: z
      .number()
      .nullish()
      .meta({ description: "Version of a skill: required there, refused elsewhere.", example: 1 }),
    entity_id: z.string().nullish().meta({
      description: "Comes back on the entry of an unchanged file.",
      example: "entity-1",
    }),
  })
  .meta({ id: "FileRef", description: "A stored file." });
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

/** The entries of `files` for the API document. */
export const requestFilesSchema = z
  .array(z.union([fileRefSchema, inlineFileSchema]))
  .nullish()
  .meta({
    description: "Up to 256 stored or inline files, each to its own path.",
    example: [{ name: "data/points.csv", content: "x,y\n1,2\n" }],
  });

/** The variables of a program for the API document. environment.ts enforces their rules. */
export const requestEnvSchema = z
  .record(z.string(), z.string())
  .nullish()
  .meta({
    description:
      `Environment variables of the program: at most ${ENV_LIMITS.variables}, values to 8 KiB, 64 KiB together. ` +
      "Names that begin with SVC_ or SANDBOX_ are refused. The program may start more slowly.",
    example: { API_MODE: "test" },
  });

/** A limit in ms: any whole number from 1. Too large values are lowered later, so unsafe integers are allowed. */
const limitMs = z
  .number()
  .min(1)
  .refine(Number.isInteger, "must be a whole number")
  .meta({ type: "integer" })
  .nullish();

/** Request fields of both executions and programs with tools. */
export const programFields = {
  version: z.string().max(MAX_VERSION_CHARS).nullish().meta({
    description: "`*` (default) or a semver range; the newest installed match is used.",
    example: "3",
  }),
  args: argsSchema.nullish().meta({
    description: "Arguments of the program: up to 256 of up to 100,000 bytes, without NUL.",
    example: ["--verbose", "points.csv"],
  }),
  stdin: z.string().nullish().meta({
    description: "Standard input; without it the program reads end of file at once.",
    example: "first line\n",
  }),
  files: requestFilesSchema,
  env: requestEnvSchema,
  user_id: z.string().nullish().meta({
    description: "For the log, cut to 128 characters. Never an identity.",
    example: "user-42",
  }),
  workspace_instance_id: z
    .unknown()
    .optional()
    .meta({ description: "Refused when it is given: attached workspaces are not offered.", example: null }),
};

export const execRequestSchema = z
  .object({
    code: z.string().meta({ description: "The program. May be empty.", example: "print(6 * 7)" }),
    lang: z.string().nullish().meta({
      description: "Language, any alias, any case. Required (or its alias `language`).",
      example: "py",
    }),
    language: z.string().nullish().meta({ description: "Alias of `lang`; `lang` wins.", example: "python" }),
    ...programFields,
    run_timeout: limitMs.meta({
      description:
        "Wall time limit of the run in ms; default 60000. A larger one than the service allows is lowered.",
      example: 10_000,
    }),
    timeout: limitMs.meta({ description: "Alias of `run_timeout`, which wins.", example: 10_000 }),
    runtime_session_hint: z.unknown().optional().meta({
      description:
        "With persistent sessions: which session the run continues, 1 to 128 of `A-Z a-z 0-9 . _ : -`. Without effect where they are off.",
      example: "notebook-1",
    }),
    session_id: z.unknown().optional().meta({
      description:
        "With persistent sessions and without `runtime_session_hint`: an earlier execution whose session the run continues; unknown ones have no effect.",
      example: "V1StGXR8_Z5jdHi6B-myT",
    }),
  })
  .meta({ id: "ExecRequest", description: "A program, and what it gets." });

/** The body as the API parses it. The API checks files and variables one by one afterwards; files have their own error code. */
export const execBodySchema = execRequestSchema.extend({
  files: z.array(z.unknown()).nullish(),
  env: z.unknown().optional(),
});
export type ExecBody = z.infer<typeof execBodySchema>;

export const outputFileSchema = z
  .object({
    id: publicId.meta({ description: "Id of the file.", example: "V1StGXR8_Z5jdHi6B-myT" }),
    name: z.string().meta({ description: "Path under /mnt/data.", example: "plot_1.png" }),
    storage_session_id: storageSession,
    kind: fileKind.meta({ description: "Whose file it is; of a new file always `user`.", example: "user" }),
    resource_id: z
      .string()
      .optional()
      .meta({ description: "As in the request; of a new file the id of the caller.", example: "user-42" }),
    version: z.number().optional().meta({ description: "As in the request.", example: 1 }),
    modified_from: z
      .object({ id: fileId, storage_session_id: storageSession })
      .optional()
      .meta({ description: "The stored input that the program changed. Its id stays valid." }),
    inherited: z
      .literal(true)
      .optional()
      .meta({ description: "A stored input that the program did not change.", example: true }),
    entity_id: z.string().optional().meta({ description: "As in the request.", example: "entity-1" }),
    size: z.number().int().meta({ description: "Bytes.", example: 1024 }),
    content_type: z.string().meta({ description: "Media type, as it is stored.", example: "text/csv" }),
  })
  .meta({ id: "OutputFile", description: "A file that the program made, changed, or left as it was." });
export type OutputFile = z.infer<typeof outputFileSchema>;

/** Output and files of a program that has ended, in the answers of both exec routes. */
export const endedFields = {
  stdout: z.string().meta({ description: "At most 65,536 bytes; more is cut.", example: "42\n" }),
  stderr: z.string().meta({
    description:
      "As `stdout`; then notes of the service, each a line that begins with `[sandbox]`. A program can write such lines, too: rely on `status`, `limits_reached` and `files_omitted`.",
    example: "",
  }),
  files: z
    .array(outputFileSchema)
    .meta({ description: "New and changed files by path, then unchanged inputs.", example: [] }),
  code: z.number().int().meta({
    description: "Exit code of the program; 128 and the number of the signal that ended it.",
    example: 0,
  }),
  signal: z
    .string()
    .nullable()
    .meta({ description: "Name of the signal that ended the program.", example: null }),
  limits: usedLimitsSchema,
  ...reportFields,
};

const milliseconds = (description: string, example: number) => z.number().meta({ description, example });

const timingsSchema = z
  .object({
    queue_ms: milliseconds("Waited for a worker.", 1.2),
    setup_ms: milliseconds("Inputs staged, and the program compiled.", 6.4),
    run_ms: milliseconds("The program ran.", 21.7),
    collect_ms: milliseconds("Outputs found and stored.", 0.9),
  })
  .meta({ id: "Timings", description: "Where the time went, in ms." });

/** Why a run ended or its output was cut; null when the program ended by itself. */
export const endStatus = runStatusSchema.nullable().meta({
  description:
    "Null: the program ended by itself. TO time limit, ML memory limit, OL and EL standard output and error beyond " +
    "their limit, SG a signal, CE not compiled.",
  example: null,
});

export const execResponseSchema = z
  .object({
    session_id: publicId.meta({
      description: "New for each execution: the storage session of its outputs.",
      example: "kd83HtQmZ0_4vYcPa7-Rn",
    }),
    ...endedFields,
    message: z.string().nullable().meta({ description: "What `status` means, in words.", example: null }),
    status: endStatus,
    wall_time: milliseconds(
      "Wall time of the run in ms; 0 when the program was not started, as after a compiler that failed.",
      21.7,
    ),
    cpu_time: milliseconds("User plus system time of all its processes in ms.", 17.3),
    memory: z.number().int().meta({ description: "Peak memory in bytes.", example: 9_437_184 }),
    language: z.string().meta({ description: "The language that was used.", example: "python" }),
    version: z.string().meta({ description: "Its version.", example: "3.13.5" }),
    timings: timingsSchema,
    session_state_persisted: z.boolean().optional().meta({
      description:
        "With persistent sessions: whether the next run of the session begins with what this one left.",
      example: true,
    }),
    session_state_restore_failed: z.boolean().optional().meta({
      description:
        "With persistent sessions: the state of the session could not be brought back, and the run began with an empty workspace.",
      example: false,
    }),
    session_state_conflict: z.literal(true).optional().meta({
      description: "Another run of the session ended first; the session continues with what that one left.",
      example: true,
    }),
    session_state_dropped: droppedVariablesSchema,
  })
  .meta({ id: "ExecResponse", description: "How the program ended, what it wrote, and its files." });
export type ExecResponse = z.infer<typeof execResponseSchema>;

const problemSchema = z
  .object({
    path: z.string().meta({ description: "Where in the request.", example: "files[2].name" }),
    problem: z.string().meta({ description: "What is wrong there.", example: "is required" }),
  })
  .meta({ id: "Problem", description: "One wrong place of a request." });

export const errorBodySchema = z
  .object({
    error: z.string().meta({ description: "Stable code, see docs/errors.md.", example: "invalid_request" }),
    message: z.string().meta({ description: "A sentence for a person.", example: "code: is required." }),
    request_id: z
      .string()
      .meta({ description: "As in `X-Request-Id`; the logs know it.", example: "req-7f3a" }),
    details: z
      .array(problemSchema)
      .optional()
      .meta({
        description: "The wrong places, where the request has some.",
        example: [{ path: "code", problem: "is required" }],
      }),
    retry_after_seconds: z
      .int()
      .min(1)
      .optional()
      .meta({ description: "With rate_limited only: when to send it again.", example: 12 }),
    retry_after: z
      .int()
      .min(1)
      .optional()
      .meta({ description: "The same as `retry_after_seconds`.", example: 12 }),
    quota: quotaSchema.optional().meta({ description: "With quota_exceeded only: its numbers." }),
  })
  .meta({ id: "Error", description: "Why a request was refused or failed. At most 16 KiB." });
