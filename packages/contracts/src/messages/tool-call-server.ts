/**
 * Messages that the tool call server reads and answers, and the parts of them that the gateway hands on. The id of an exchange there
 * is the execution id.
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

/** A callback token that is to be sealed for an execution, and what it is good for. */
export const callbackSchema = z.object({
  /** Names the ledger record that pays for the calls. */
  grant_id: idSchema,
  /** Not sealed: good at the tool call server alone. */
  token: callbackTokenSchema,
  tools: toolNamesSchema,
  life_seconds: z.number().int().positive().max(MAX_CALLBACK_SECONDS),
});

/** Body of POST /sessions, which opens an exchange. `timeout`: how long a call waits for its result, in ms, lowered to the configured time. */
export const openToolExchangeSchema = z.object({
  execution_id: idSchema,
  session_id: idSchema,
  timeout: z.number().int().positive().optional(),
  tools: toolNamesSchema,
  /** Its callback token, 32 random bytes in base64url; made by the server when it is absent. */
  callback_token: callbackTokenSchema.optional(),
});
export type OpenToolExchange = z.infer<typeof openToolExchangeSchema>;

export interface ToolExchange {
  success: true;
  execution_id: string;
  /** Shown by calls of this execution as X-Callback-Token; only the gateway gets it, sealed. */
  callback_token: string;
}

/**
 * Query of GET /sessions/:id/pending. With `call_ids` the answer waits until all of them are recorded and holds those
 * that have no result yet; without, it waits for the first call without a result and holds all of them.
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
  /** `unregistered_tool`: a tool that was not declared has been asked for; the execution has to end. */
  status: "active" | "unregistered_tool";
  /** The first such tool. */
  unregistered_tool?: string;
  /** In the order of their ids. */
  pending_calls: PendingCall[];
}

/** Body of POST /sessions/:id/results. A result that is absent is null. */
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

/** `processed`: how many of the given results are the result of their call now; an earlier, other result stays. */
export interface ProcessedResults {
  success: true;
  processed: number;
}

/** Body of POST /tool-call, on the gateway and on the tool call server. */
export const toolCallSchema = z.object({ tool_name: toolNameSchema, input: z.unknown() });

/** Of such a body: the arguments stand one level deep in it. */
export const TOOL_CALL_BOUNDS = boundsAround(1);

/** Calls that one request records. */
export const MAX_RECORDED_CALLS = 256;

/** Of a body that records several calls, or tells several results: what one of them may have, and what is around it. */
export const TOOL_CALLS_BOUNDS = boundsAround(4);

/** Body of POST /tool-calls, on the gateway and on the tool call server: all of them are recorded, or none. */
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
