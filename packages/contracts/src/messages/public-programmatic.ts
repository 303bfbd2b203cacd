/** Schemas of POST /v1/exec/programmatic and its cancel route. Unknown fields are ignored; null counts as absent. */
import { z } from "zod";
import { idSchema } from "../ids.ts";
import { endedFields, endStatus, errorBodySchema, programFields } from "./public-exec.ts";
import { usedLimitsSchema } from "./used-limits.ts";

const MAX_TOOL_NAME_CHARS = 256;

const EXAMPLE_TOKEN = "svc1.opaque";

/** A tool as callers declare it: by name, or in the shape `{type: "function", function: {...}}`. */
const toolName = z.string().min(1, "must not be empty").max(MAX_TOOL_NAME_CHARS);
const toolFields = {
  name: toolName.nullish().meta({
    description: "Name of the tool; its calls carry it unchanged.",
    example: "get_weather",
  }),
  description: z
    .string()
    .nullish()
    .meta({ description: "Text for the program's documentation.", example: "The weather of a city" }),
  parameters: z
    .unknown()
    .optional()
    .meta({
      description: "JSON schema of the arguments.",
      example: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    }),
};
export const toolDeclarationSchema = z
  .object({
    ...toolFields,
    function: z
      .object(toolFields)
      .nullish()
      .meta({
        description: "The same fields, where clients put them here.",
        example: { name: "get_weather" },
      }),
  })
  .meta({ id: "Tool", description: "A tool that the program may call." });
export type ToolDeclaration = z.infer<typeof toolDeclarationSchema>;

const roundLimitMs = z.number().positive().nullish();

/** A start has no `continuation_token`, or an empty one. */
export const programmaticStartSchema = z
  .object({
    code: z
      .string()
      .min(1, "must not be empty")
      .meta({ description: "The program.", example: 'print(await get_weather(city="Oslo"))' }),
    tools: z
      .array(toolDeclarationSchema)
      .meta({ description: "Up to 100 tools that the program may call, maybe none." }),
    lang: z.string().nullish().meta({ description: "Alias of `language`, which wins.", example: "py" }),
    language: z
      .string()
      .nullish()
      .meta({ description: "`python` (default) or `bash`; wins over `lang`.", example: "python" }),
    ...programFields,
    timeout: roundLimitMs.meta({
      description: "Run time limit of one round in ms; time spent paused does not count.",
      example: 10_000,
    }),
    run_timeout: roundLimitMs.meta({ description: "Alias of `timeout`, which wins.", example: 10_000 }),
  })
  .meta({ id: "ProgrammaticStart", description: "Starts a program." });

/** The body as the API parses it. The API first counts files, variables and tools, then checks them one by one. */
export const programmaticStartBodySchema = programmaticStartSchema.extend({
  tools: z.array(z.unknown()),
  files: z.array(z.unknown()).nullish(),
  env: z.unknown().optional(),
});
export type ProgrammaticStartBody = z.infer<typeof programmaticStartBodySchema>;

const callId = z.string().meta({ description: "Id of the call.", example: "call_001" });

export const toolResultSchema = z
  .object({
    call_id: callId,
    result: z
      .unknown()
      .optional()
      .meta({ description: "Any JSON; absent counts as null.", example: { celsius: 4 } }),
    is_error: z
      .boolean()
      .nullish()
      .meta({ description: "The tool failed: the program sees an error.", example: false }),
    error_message: z
      .string()
      .nullish()
      .meta({ description: "With `is_error`: what the program is told.", example: "no such city" }),
  })
  .meta({ id: "ToolResult", description: "The answer to a call." });
export type ToolResult = z.infer<typeof toolResultSchema>;

export const programmaticResumeSchema = z
  .object({
    continuation_token: z
      .string()
      .min(1)
      .meta({ description: "As the last answer gave it.", example: EXAMPLE_TOKEN }),
    tool_results: z.array(toolResultSchema).min(1).max(200).meta({
      description: "Answers to calls of the last answer, each at most once. Calls without one come again.",
    }),
  })
  .meta({
    id: "ProgrammaticResume",
    description: "Goes on with a paused program. Other fields are ignored.",
  });

export const programmaticRequestSchema = z
  .union([programmaticStartSchema, programmaticResumeSchema])
  .meta({ id: "ProgrammaticRequest", description: "A start, or with `continuation_token` a resume." });

export const cancelRequestSchema = z
  .object({
    request_id: z.string().min(1).meta({
      description: "The X-LibreChat-Code-Request-ID header of the executions to cancel.",
      example: "turn-17",
    }),
  })
  .meta({ id: "CancelRequest", description: "Which programs to cancel." });

export const cancelResponseSchema = z
  .object({
    status: z.literal("cancelled").meta({ description: "Always the same.", example: "cancelled" }),
    cancelled: z
      .number()
      .int()
      .nonnegative()
      .meta({ description: "How many executions were cancelled, maybe none.", example: 1 }),
  })
  .meta({ id: "CancelResponse", description: "The programs are cancelled." });

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
  session_id: idSchema.meta({
    description: "The storage session of the program's outputs, the same in all rounds.",
    example: "kd83HtQmZ0_4vYcPa7-Rn",
  }),
  tool_calls_made: z.number().int().meta({ description: "Calls so far.", example: 1 }),
  execution_time: z.number().meta({ description: "Run time of all rounds so far in ms.", example: 31.4 }),
  limits: usedLimitsSchema,
};

const callArguments = z.record(z.string(), z.unknown());

export const requestedCallSchema = z
  .object({
    id: callId,
    name: z.string().meta({ description: "Name of the tool, as it was declared.", example: "get_weather" }),
    arguments: callArguments.meta({ description: "Its arguments.", example: { city: "Oslo" } }),
    input: callArguments.meta({ description: "The same as `arguments`.", example: { city: "Oslo" } }),
  })
  .meta({ id: "ToolCall", description: "A call that the program waits for." });

export const toolCallRequiredSchema = z
  .object({
    status: z
      .literal("tool_call_required")
      .meta({ description: "The program is paused.", example: "tool_call_required" }),
    ...roundFields,
    continuation_token: z
      .string()
      .meta({ description: "Send it back with the results; valid for this pause.", example: EXAMPLE_TOKEN }),
    tool_calls: z
      .array(requestedCallSchema)
      .min(1)
      .meta({ description: "Every call that waits for its result, in the order in which they were made." }),
    partial_stdout: z.string().meta({ description: "All output since the start.", example: "asking\n" }),
    partial_stderr: z.string().meta({ description: "All error output since the start.", example: "" }),
  })
  .meta({ id: "ToolCallRequired", description: "The program waits for the results of its calls." });
export type ToolCallRequired = z.infer<typeof toolCallRequiredSchema>;

const programEndFields = { ...roundFields, ...endedFields, sandbox_status: endStatus };

export const programmaticResponseSchema = z
  .union([
    toolCallRequiredSchema,
    z
      .object({
        status: z.literal("completed").meta({ description: "The program ended well.", example: "completed" }),
        ...programEndFields,
      })
      .meta({ id: "ProgrammaticCompleted", description: "The program ended with code 0." }),
    z
      .object({
        status: z.literal("error").meta({ description: "The program failed.", example: "error" }),
        ...programEndFields,
        error: z
          .string()
          .meta({ description: "A sentence, not a code.", example: "Sandbox exited with code 1" }),
        error_type: z
          .enum(ERROR_TYPES)
          .meta({ description: "What kind of failure.", example: "nonzero_exit" }),
      })
      .meta({ id: "ProgrammaticError", description: "The program failed, or a limit ended it." }),
  ])
  .meta({
    id: "ProgrammaticResponse",
    description: "A pause with calls to answer, or how the program ended.",
  });
export type ProgrammaticResponse = z.infer<typeof programmaticResponseSchema>;

/**
 * Error body of a program that failed because of the service: the usual error fields, plus the execution's session.
 * The API document refers to this schema by its id.
 */
export const brokenExecutionSchema = errorBodySchema
  .extend({
    status: z.literal("error").optional().meta({ description: "The program had started.", example: "error" }),
    error_type: z
      .literal("infrastructure")
      .optional()
      .meta({ description: "The service broke, not the program.", example: "infrastructure" }),
    session_id: idSchema
      .optional()
      .meta({ description: "As in the answers of the program.", example: "kd83HtQmZ0_4vYcPa7-Rn" }),
  })
  .meta({ id: "BrokenExecution", description: "An error; once the program had started, with its session." });
