/**
 * The messages that the tool call server reads and answers, including those that the gateway forwards. An exchange has the
 * execution's id.
 */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { idSchema } from "../ids.ts";
import { boundsAround } from "../json-bounds.ts";

export const EXECUTION_ID_HEADER = "x-execution-id";

export const TOOL_CALL_ID_HEADER = "x-tool-call-id";

export const CALLBACK_TOKEN_HEADER = "x-callback-token";

export const TOOL_CALL_ID_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;

export const toolCallIdSchema = z.string().regex(TOOL_CALL_ID_PATTERN);

export const toolNameSchema = z.string().min(1).max(1024);

export const toolNamesSchema = z.array(toolNameSchema).max(1000);

/** Two days: longer than the pauses of all calls of an execution together. */
export const MAX_CALLBACK_SECONDS = 172_800;

const CALLBACK_TOKEN_BYTES = 32;

export function newCallbackToken(): string {
  return randomBytes(CALLBACK_TOKEN_BYTES).toString("base64url");
}

export const callbackTokenSchema = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** A request to seal a callback token for an execution, with the scope of the token. */
export const callbackSchema = z.object({
  /** Id of the ledger record that the calls are charged to. */
  grant_id: idSchema,
  /** Not sealed. Valid only at the tool call server. */
  token: callbackTokenSchema,
  tools: toolNamesSchema,
  life_seconds: z.number().int().positive().max(MAX_CALLBACK_SECONDS),
});

/** Body of POST /sessions, which opens an exchange. `timeout`: how long a call waits for its result, in ms, at most the configured time. */
export const openToolExchangeSchema = z.object({
  execution_id: idSchema,
  session_id: idSchema,
  timeout: z.number().int().positive().optional(),
  tools: toolNamesSchema,
  /** The exchange's callback token: 32 random bytes in base64url. The server makes one when it is absent. */
  callback_token: callbackTokenSchema.optional(),
});
export type OpenToolExchange = z.infer<typeof openToolExchangeSchema>;

export interface ToolExchange {
  success: true;
  execution_id: string;
  /** The gateway shows it as X-Callback-Token with each call of this execution. The runner and the program see it only sealed. */
  callback_token: string;
}

/**
 * Query of GET /sessions/:id/pending. With `call_ids` the server waits until all of these calls are recorded, then answers with those
 * that have no result yet. Without, it waits for the first call without a result, then answers with all such calls.
 */
export const pendingQuerySchema = z.object({
  wait_ms: z
    .string()
    .regex(/^\d{1,6}$/, "must be a whole number of at most 6 digits")
    .transform(Number)
    .optional(),
  call_ids: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(toolCallIdSchema).max(1000))
    .optional(),
});

export interface PendingCall {
  call_id: string;
  tool_name: string;
  tool_input: unknown;
  /** When the call was recorded, in ms since 1970. */
  timestamp: number;
}

export interface PendingCalls {
  /** `unregistered_tool`: the program asked for an undeclared tool, so the execution must end. */
  status: "active" | "unregistered_tool";
  /** The first such tool. */
  unregistered_tool?: string;
  /** In the order of their ids. */
  pending_calls: PendingCall[];
}

/** Body of POST /sessions/:id/results. An absent result counts as null. */
export const toolResultsSchema = z.object({
  results: z
    .array(
      z.object({
        call_id: toolCallIdSchema,
        result: z.unknown().optional(),
        is_error: z.boolean().default(false),
        error_message: z.string().optional(),
      }),
    )
    .min(1)
    .max(1000),
});
export type ToolResults = z.infer<typeof toolResultsSchema>;

/** `processed`: how many of the given results their calls now have. A call that already has another result keeps it. */
export interface ProcessedResults {
  success: true;
  processed: number;
}

/** Body of POST /tool-call, on the gateway and on the tool call server. */
export const toolCallSchema = z.object({ tool_name: toolNameSchema, input: z.unknown() });

/** JSON bounds of that body, in which the arguments are one level deep. */
export const TOOL_CALL_BOUNDS = boundsAround(1);

/** Most calls that one request may record. */
export const MAX_RECORDED_CALLS = 256;

/** JSON bounds of a body with several calls or several results: the bounds of a single one plus the wrapper. */
export const TOOL_CALLS_BOUNDS = boundsAround(4);

/** Body of POST /tool-calls, on the gateway and on the tool call server. The server records all of the calls or none. */
export const recordToolCallsSchema = z.object({
  calls: z
    .array(z.object({ call_id: toolCallIdSchema, call: toolCallSchema }))
    .min(1)
    .max(MAX_RECORDED_CALLS)
    .refine((calls) => new Set(calls.map(({ call_id }) => call_id)).size === calls.length, {
      message: "two calls have the same id",
    }),
});
export type RecordToolCalls = z.infer<typeof recordToolCallsSchema>;

export interface RecordedToolCalls {
  success: true;
}
