/**
 * The runner's requests and answers about programs with tools. The caller's JSON (schemas, arguments, results) travels as
 * JSON text: it may be nested deeper than a signed message, and it arrives without loss or rewriting.
 */
import { z } from "zod";
import { idSchema } from "../ids.ts";
import { toolCallIdSchema, toolNameSchema } from "./tool-call-server.ts";
import { usedLimitsSchema } from "./used-limits.ts";

const positive = z.number().int().positive();

/** A declared tool. `parameters_json`: the JSON schema of its arguments, as JSON text. */
export const toolSchema = z.object({
  name: z.string().min(1).max(256),
  description: z.string().optional(),
  parameters_json: z.string().optional(),
});
export type Tool = z.infer<typeof toolSchema>;

/** The id of an execution's n-th call, n from 1. */
export function callIdOf(n: number): string {
  return `call_${String(n).padStart(3, "0")}`;
}

/** The n of an id from `callIdOf`; 0 for any other text. */
export function callNumberOf(callId: string): number {
  const number = /^call_(\d{1,15})$/.exec(callId)?.[1];
  return number === undefined ? 0 : Number(number);
}

const outcomeSchema = z.union([
  z.object({ result_json: z.string() }),
  z.object({ error_message: z.string() }),
]);

/** The caller's answer to a call. */
const callAnswerSchema = z.object({ call_id: z.string(), outcome: outcomeSchema });
export type CallAnswer = z.infer<typeof callAnswerSchema>;

/** A tool call that an earlier attempt made. Without `outcome` the call still waits for its result; it keeps its id. */
export const recordedCallSchema = z.object({
  call_id: z.string(),
  name: z.string(),
  /** The arguments as canonical JSON. */
  input_json: z.string(),
  outcome: outcomeSchema.optional(),
});
export type RecordedCall = z.infer<typeof recordedCallSchema>;

const hashSeedSchema = z.number().int().min(0).max(4_294_967_295);

/** How to run a program with tools: the field `ptc` of POST /execute. */
export const programmaticRunSchema = z.object({
  mode: z.enum(["live", "replay"]),
  execution_id: idSchema,
  /** Counted from 1; each answer of the execution ends one. */
  round: positive,
  /** JSON text of Tool[]. */
  tools_json: z.string(),
  /** Sealed by the gateway. The runner shows it as the grant of tool calls. */
  callback_token: z.string(),
  /** PYTHONHASHSEED of every attempt. The first attempt may start in a process with another seed; it reports that seed when it pauses. */
  hash_seed: hashSeedSchema,
  /** How many calls the execution may still make. Recorded calls do not count. */
  max_calls: z.number().int().nonnegative(),
  /** With `replay`: all calls so far, in the order of their ids. */
  history: z.array(recordedCallSchema).optional(),
});
export type ProgrammaticRun = z.infer<typeof programmaticRunSchema>;

/** The calls of a paused program that have results when it resumes. */
export const answeredCallsSchema = z.object({
  answered_call_ids: z.array(z.string()).min(1),
  /** The results, unless they are large. The tool call server has the same results. */
  answers: z.array(callAnswerSchema).optional(),
});

const pausedCallSchema = z.object({
  call_id: toolCallIdSchema,
  tool_name: toolNameSchema,
  tool_input: z.unknown(),
});

/** A call that a paused program waits for. */
export type PausedCall = z.infer<typeof pausedCallSchema>;

/** Far more calls than a program may make. */
const MAX_PAUSED_CALLS = 10_000;

/** Ids, addresses, names of languages. */
const shortText = z.string().max(16 * 1024);

/** The runner's 200 answer when the program pauses and waits for its caller, instead of a result. */
export const pausedResponseSchema = z.object({
  paused: z.literal(true),
  session_id: shortText,
  /** All calls without a result, in the order in which the program made them. */
  pending_call_ids: z.array(toolCallIdSchema).min(1).max(MAX_PAUSED_CALLS),
  /** The same calls with their arguments. Absent when they are large: the tool call server has them. */
  pending_calls: z.array(pausedCallSchema).max(MAX_PAUSED_CALLS).optional(),
  /** All output since the start, cut as in a result. */
  stdout: z.string(),
  stderr: z.string(),
  /** Run time of all rounds of this attempt, ms. */
  execution_time: z.number(),
  tool_calls_made: z.number().int(),
  /** The address of the runner that holds the frozen program. */
  runner_url: shortText,
  hash_seed: hashSeedSchema.optional(),
  language: shortText,
  version: shortText,
  /** The limits of the round. Runners of an earlier version do not send them. */
  limits: usedLimitsSchema.optional(),
  /** Added by the worker. */
  timings: z.object({ queue_ms: z.number() }).optional(),
});
export type PausedResponse = z.infer<typeof pausedResponseSchema>;

/** The runner reports at most this many characters of the tool name that a program asked for. */
export const MAX_ASKED_NAME = 1024;

/** Why the service itself ended a program, in addition to the ordinary result. */
export const programmaticFaultSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("unregistered_tool"), tool: z.string().max(MAX_ASKED_NAME) }),
  z.object({ type: z.literal("tool_limit") }),
  z.object({ type: z.literal("replay_diverged") }),
]);
export type ProgrammaticFault = z.infer<typeof programmaticFaultSchema>;

/** The fault text shows at most this many characters of an undeclared name. Declared names are not longer. */
const SHOWN_NAME = 256;

/** The text of a fault, for callers and for the last line of stderr. `maxCalls`: PTC_MAX_CALLS. */
export function faultText(fault: ProgrammaticFault, maxCalls: number): string {
  switch (fault.type) {
    case "unregistered_tool":
      return `Sandbox requested an unregistered tool: ${Array.from(fault.tool).slice(0, SHOWN_NAME).join("")}`;
    case "tool_limit":
      return `Execution exceeded maximum tool calls (${maxCalls})`;
    case "replay_diverged":
      return "The program did not repeat its recorded tool calls";
  }
}

/** Additional fields of a programmatic result. */
export const programmaticResultFields = {
  execution_time: z.number().optional(),
  tool_calls_made: z.number().int().optional(),
  programmatic_fault: programmaticFaultSchema.optional(),
};

/** Redis key of an execution's recorded calls: a list of RecordedCall as JSON, in the order of their ids. */
export function historyKey(executionId: string): string {
  return `svc:ptc:${executionId}:history`;
}
