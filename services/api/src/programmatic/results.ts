/** What a caller answers to a pause: are these calls pending, how large are the answers, what is remembered. Pure. */
import { hash } from "node:crypto";
import {
  type CallAnswer,
  canonicalArguments,
  type RecordedCall,
  ServiceError,
  type ToolResult,
} from "@svc/contracts";
import { invalidToolResults } from "./request.ts";

export interface ResultLimits {
  maxResultBytes: number;
  maxHistoryBytes: number;
}

export type Outcome = NonNullable<RecordedCall["outcome"]>;

export type Answered = CallAnswer;

/** Bytes of results that travel with a resume itself, together. */
const SMALL_BYTES = 8192;
const DEFAULT_ERROR_MESSAGE = "tool execution failed";

export function outcomesOf(results: readonly ToolResult[]): Answered[] {
  return results.map(({ call_id, result, is_error, error_message }) => ({
    call_id,
    outcome: is_error
      ? { error_message: error_message ?? DEFAULT_ERROR_MESSAGE }
      : { result_json: JSON.stringify(result ?? null) },
  }));
}

/** The same for the same results, whatever their order and the order of their keys. */
export function digestOf(results: readonly ToolResult[]): string {
  const items = results
    .map(({ call_id, result, is_error, error_message }) =>
      canonicalArguments([
        call_id,
        result ?? null,
        is_error === true,
        error_message ?? DEFAULT_ERROR_MESSAGE,
      ]),
    )
    .sort();
  return hash("sha256", items.join("\n"), "base64url");
}

/** Refuses answers to calls that do not wait, and two answers to one call. */
export function checkPending(results: readonly ToolResult[], pending: readonly string[]): void {
  const open = new Set(pending);
  const details = results.flatMap(({ call_id }, at) =>
    open.delete(call_id)
      ? []
      : [
          {
            path: `tool_results[${at}].call_id`,
            problem: pending.includes(call_id) ? "is answered twice" : "is not a pending call",
          },
        ],
  );
  if (details.length > 0) throw invalidToolResults(details);
}

const bytesOf = (outcome: Outcome) =>
  Buffer.byteLength("result_json" in outcome ? outcome.result_json : outcome.error_message);

/** Answers that are small enough together to travel with the resume itself; undefined: they are not. */
export function smallAnswers(answered: readonly Answered[]): Answered[] | undefined {
  const bytes = answered.reduce((sum, { outcome }) => sum + bytesOf(outcome), 0);
  return bytes > SMALL_BYTES ? undefined : [...answered];
}

/** Bytes of all outcomes so far, these included; refuses what is over a limit. */
export function historyBytes(before: number, answered: readonly Answered[], limits: ResultLimits): number {
  let total = before;
  for (const { call_id, outcome } of answered) {
    const bytes = bytesOf(outcome);
    if (bytes > limits.maxResultBytes) {
      throw new ServiceError(
        "tool_result_too_large",
        `The result of ${call_id.slice(0, 64)} has ${bytes} bytes; ${limits.maxResultBytes} are allowed.`,
      );
    }
    total += bytes;
  }
  if (total > limits.maxHistoryBytes) throw new ServiceError("tool_history_too_large");
  return total;
}
