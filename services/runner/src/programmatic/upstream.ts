/**
 * The runner's side of tool calls at the gateway: one request per call, which stays open until the call has its result.
 * While gateway or tool call server are away the same call, with the same id, is sent again and again: they know it by its
 * id. Adds the callback token, which the program never sees.
 */
import { setTimeout as sleep } from "node:timers/promises";
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

  /** The answer, whenever it comes. Rejects only when the signal is aborted. */
  async call(call: UpstreamCall, signal: AbortSignal): Promise<ToolAnswer> {
    for (let pause: number = BACK_OFF_MS.first; ; pause = Math.min(pause * 2, BACK_OFF_MS.most)) {
      const answer = await this.#once(call, signal);
      if (answer !== undefined) return answer;
      await sleep(pause, undefined, { signal });
    }
  }

  /** Undefined: something on the way is away. */
  async #once(call: UpstreamCall, signal: AbortSignal): Promise<ToolAnswer | undefined> {
    try {
      const response = await this.#client.send({
        method: "POST",
        path: "/tool-call",
        requestId: call.requestId,
        headers: {
          "content-type": "application/json",
          "x-callback-token": call.token,
          "x-execution-id": call.executionId,
          "x-tool-call-id": call.callId,
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

async function answerOf(response: InnerResponse): Promise<ToolAnswer | undefined> {
  const { statusCode: status, body } = response;
  if (status >= 500) {
    await body.dump();
    return undefined;
  }
  const text = await body.text();
  if (status === 200) return resultOf(text);
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
