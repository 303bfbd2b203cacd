/**
 * The runner's side of tool calls at the gateway: one request that records a call, and one that stays open until the call
 * has its result. While gateway or tool call server are away the same call, with the same id, is sent again and again: they know it by its
 * id. Adds the callback token, which the program never sees.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  CALLBACK_TOKEN_HEADER,
  EXECUTION_ID_HEADER,
  TOOL_CALL_ID_HEADER,
  TOOL_CALL_WAIT_HEADER,
} from "@svc/contracts";
import { InnerClient, type InnerResponse } from "@svc/service-kit";
import { rawMember } from "./raw-member.ts";

const BACK_OFF_MS = { first: 50, most: 1000 } as const;
const MAX_REFUSAL_BYTES = 16 * 1024;
const FAILED = "tool execution failed";

/** `unanswered`: nobody gave a result in time. `refused`: this execution has no way to tools any more. */
export type ToolAnswer =
  | { kind: "result"; result_json: string }
  | { kind: "failure"; error_message: string }
  | { kind: "unanswered" }
  | { kind: "spent" }
  | { kind: "refused"; status: number };

/** `recorded`: there is no result yet. */
export type ToolRecord = ToolAnswer | { kind: "recorded" };

export interface UpstreamCall {
  token: string;
  executionId: string;
  callId: string;
  requestId: string;
  text: string;
}

export class ToolUpstream {
  readonly #client: InnerClient;

  /** `connections`: calls that may be open at once, of all programs. */
  constructor(baseUrl: string, connections: number) {
    this.#client = new InnerClient({ baseUrl, unreachable: "upstream_unavailable", connections });
  }

  /** Has the call recorded. Rejects only when the signal is aborted. */
  record(call: UpstreamCall, signal: AbortSignal): Promise<ToolRecord> {
    return persistently(() => this.#once(call, signal, { [TOOL_CALL_WAIT_HEADER]: "no" }), signal);
  }

  /** The answer, whenever it comes, of a call that may be recorded or not. Rejects only when the signal is aborted. */
  answer(call: UpstreamCall, signal: AbortSignal): Promise<ToolAnswer> {
    return persistently(async () => {
      const answer = await this.#once(call, signal, {});
      return answer?.kind === "recorded" ? undefined : answer;
    }, signal);
  }

  /** Undefined: something on the way is away. */
  async #once(
    call: UpstreamCall,
    signal: AbortSignal,
    headers: Record<string, string>,
  ): Promise<ToolRecord | undefined> {
    try {
      const response = await this.#client.send({
        method: "POST",
        path: "/tool-call",
        requestId: call.requestId,
        headers: {
          "content-type": "application/json",
          [CALLBACK_TOKEN_HEADER]: call.token,
          [EXECUTION_ID_HEADER]: call.executionId,
          [TOOL_CALL_ID_HEADER]: call.callId,
          ...headers,
        },
        body: call.text,
        signal,
        timeoutMs: 0,
      });
      return await answerOf(response);
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  async close(): Promise<void> {
    await this.#client.close();
  }
}

/** Tries until there is an answer. */
async function persistently<T>(attempt: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
  for (let pause: number = BACK_OFF_MS.first; ; pause = Math.min(pause * 2, BACK_OFF_MS.most)) {
    const answer = await attempt();
    if (answer !== undefined) return answer;
    await sleep(pause, undefined, { signal });
  }
}

async function answerOf(response: InnerResponse): Promise<ToolRecord | undefined> {
  const { statusCode: status, body } = response;
  if (status >= 500) {
    await body.dump();
    return undefined;
  }
  const text = await body.text();
  if (status === 200) return resultOf(text);
  if (status === 202) return { kind: "recorded" };
  if (status === 408) return { kind: "unanswered" };
  return isSpent(text) ? { kind: "spent" } : { kind: "refused", status };
}

function resultOf(text: string): ToolAnswer {
  const answer = JSON.parse(text) as { is_error?: boolean; error_message?: string | null };
  if (answer.is_error === true) return { kind: "failure", error_message: answer.error_message ?? FAILED };
  return { kind: "result", result_json: rawMember(text, "result") ?? "null" };
}

function isSpent(text: string): boolean {
  try {
    const refusal = JSON.parse(text.slice(0, MAX_REFUSAL_BYTES)) as { ledger_reason?: string };
    return refusal.ledger_reason === "tool_call_budget" || refusal.ledger_reason === "request_budget";
  } catch {
    return false;
  }
}
