/** Schemas of POST /v1/exec/programmatic and its cancel route. Unknown fields are ignored; null counts as absent. */
import { z } from "zod";
import { argsSchema } from "../args.ts";
import { idSchema } from "../ids.ts";
import { errorBodySchema, outputFileSchema, requestEnvSchema, requestFilesSchema } from "./public-exec.ts";
import { reportFields, runStatusSchema, usedLimitsSchema } from "./runner-answers.ts";

const MAX_VERSION_CHARS = 256;
const MAX_TOOL_NAME_CHARS = 256;

/** A tool as callers declare it: by name, or in the shape `{type: "function", function: {...}}`. */
const toolName = z.string().min(1, "must not be empty").max(MAX_TOOL_NAME_CHARS);
const toolFields = {
  name: toolName.nullish(),
  description: z.string().nullish(),
  parameters: z.unknown().optional().meta({ description: "JSON schema of the arguments." }),
};
export const toolDeclarationSchema = z
  .object({ ...toolFields, function: z.object(toolFields).nullish() })
  .meta({ id: "Tool" });
export type ToolDeclaration = z.infer<typeof toolDeclarationSchema>;

const roundLimitMs = z
  .number()
  .positive()
  .meta({ description: "Run time limit of one round in ms; time spent paused does not count." });

/** A start has no `continuation_token`, or an empty one. */
export const programmaticStartSchema = z
  .object({
    code: z.string().min(1, "must not be empty").meta({ description: "The program." }),
    tools: z
      .array(toolDeclarationSchema)
      .meta({ description: "Up to 100 tools that the program may call, maybe none." }),
    lang: z.string().nullish(),
    language: z.string().nullish().meta({ description: "`python` (default) or `bash`; wins over `lang`." }),
    version: z.string().max(MAX_VERSION_CHARS).nullish(),
    timeout: roundLimitMs.nullish(),
    run_timeout: roundLimitMs.nullish().meta({ description: "Alias of `timeout`." }),
    args: argsSchema.nullish(),
    stdin: z.string().nullish(),
    files: requestFilesSchema.nullish(),
    env: requestEnvSchema.nullish(),
    user_id: z.string().nullish(),
    workspace_instance_id: z.unknown().optional(),
  })
  .meta({ id: "ProgrammaticStart" });

/** The body as it is parsed: files, variables and tools are counted first, and checked one by one afterwards. */
export const programmaticStartBodySchema = programmaticStartSchema.extend({
  tools: z.array(z.unknown()),
  files: z.array(z.unknown()).nullish(),
  env: z.unknown().optional(),
});
export type ProgrammaticStartBody = z.infer<typeof programmaticStartBodySchema>;

export const toolResultSchema = z
  .object({
    call_id: z.string(),
    result: z.unknown().optional().meta({ description: "Any JSON; absent counts as null." }),
    is_error: z.boolean().nullish(),
    error_message: z.string().nullish(),
  })
  .meta({ id: "ToolResult" });
export type ToolResult = z.infer<typeof toolResultSchema>;

export const programmaticResumeSchema = z
  .object({
    continuation_token: z.string().min(1),
    tool_results: z.array(toolResultSchema).min(1).max(200),
  })
  .meta({ id: "ProgrammaticResume" });

export const programmaticRequestSchema = z
  .union([programmaticStartSchema, programmaticResumeSchema])
  .meta({ id: "ProgrammaticRequest" });

export const cancelRequestSchema = z
  .object({
    request_id: z.string().min(1).meta({
      description: "The X-LibreChat-Code-Request-ID header of the executions to cancel.",
    }),
  })
  .meta({ id: "CancelRequest" });

export const cancelResponseSchema = z
  .object({ status: z.literal("cancelled"), cancelled: z.number().int().nonnegative() })
  .meta({ id: "CancelResponse" });

export const ERROR_TYPES = [
  "timeout",
  "memory_limit",
  "output_limit",
  "nonzero_exit",
  "signal",
  "unregistered_tool",
  "tool_limit",
  "replay_diverged",
] as const;
export type ErrorType = (typeof ERROR_TYPES)[number];

const roundFields = {
  session_id: idSchema,
  tool_calls_made: z.number().int(),
  execution_time: z.number().meta({ description: "Run time of all rounds so far in ms." }),
};

export const requestedCallSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    arguments: z.record(z.string(), z.unknown()),
    input: z.record(z.string(), z.unknown()).meta({ description: "The same as `arguments`." }),
  })
  .meta({ id: "ToolCall" });

export const toolCallRequiredSchema = z
  .object({
    status: z.literal("tool_call_required"),
    ...roundFields,
    continuation_token: z.string(),
    tool_calls: z.array(requestedCallSchema).min(1),
    partial_stdout: z.string(),
    partial_stderr: z.string(),
  })
  .meta({ id: "ToolCallRequired" });
export type ToolCallRequired = z.infer<typeof toolCallRequiredSchema>;

const endedFields = {
  ...roundFields,
  stdout: z.string(),
  stderr: z.string(),
  files: z.array(outputFileSchema),
  limits: usedLimitsSchema,
  ...reportFields,
  code: z.number().int(),
  signal: z.string().nullable(),
  sandbox_status: runStatusSchema.nullable(),
};

export const programmaticResponseSchema = z
  .union([
    toolCallRequiredSchema,
    z.object({ status: z.literal("completed"), ...endedFields }).meta({ id: "ProgrammaticCompleted" }),
    z
      .object({
        status: z.literal("error"),
        ...endedFields,
        error: z.string().meta({ description: "A sentence." }),
        error_type: z.enum(ERROR_TYPES),
      })
      .meta({ id: "ProgrammaticError" }),
  ])
  .meta({ id: "ProgrammaticResponse" });
export type ProgrammaticResponse = z.infer<typeof programmaticResponseSchema>;

/** Error body of a program that the service broke: the fields of every error, and whose execution it was. */
export const brokenExecutionSchema = errorBodySchema
  .extend({
    status: z.literal("error").optional(),
    error_type: z.literal("infrastructure").optional(),
    session_id: idSchema.optional(),
  })
  .meta({ id: "BrokenExecution" });
