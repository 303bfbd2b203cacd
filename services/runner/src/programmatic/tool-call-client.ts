/**
 * The runner's client for tool calls at the gateway: one request records calls, another stays open until a call has its
 * result. Requests are repeated while the gateway or the tool call server is away: call ids make repeats safe. Adds the
 * callback token, which the program never sees.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { CALLBACK_TOKEN_HEADER, EXECUTION_ID_HEADER, TOOL_CALL_ID_HEADER } from "@svc/contracts";
import { answerBytes, InnerClient, type TlsIdentity } from "@svc/service-kit";

const BACK_OFF_MS = { first: 50, most: 1000 } as const;
const MAX_REFUSAL_BYTES = 16 * 1024;
const FAILED = "tool execution failed";

/** `spent`: a budget is used up. `refused`: this execution may not call tools any more. */
export type ToolRefusal = { kind: "spent" } | { kind: "refused"; status: number };

/** `unanswered`: no result came in time. */
export type ToolAnswer =
  | { kind: "result"; result_json: string }
  | { kind: "failure"; error_message: string }
  | { kind: "unanswered" }
  | ToolRefusal;

/** The program whose calls are sent. */
export interface Sender {
  token: string;
  executionId: string;
  requestId: string;
}

interface Sent {
  path: string;
  headers: Record<string, string>;
  body: string;
}

type Reading<T> = (status: number, text: string) => T;

export class ToolCallClient {
  readonly #client: InnerClient;

  /** `connections`: most requests that may be open at once, of all programs. */
  constructor(baseUrl: string, connections: number, tls?: TlsIdentity) {
    this.#client = new InnerClient({ baseUrl, unreachable: "upstream_unavailable", connections, tls });
  }

  /** Records all calls of a body of `POST /tool-calls`, or none. Rejects only when the signal is aborted. */
  record(sender: Sender, body: string, signal: AbortSignal): Promise<ToolRefusal | { kind: "recorded" }> {
    return this.#repeatedly(sender, { path: "/tool-calls", headers: {}, body }, signal, recordOf);
  }

  /** Waits for the answer to a call, which may be recorded already or not. Rejects only when the signal is aborted. */
  answer(sender: Sender, callId: string, body: string, signal: AbortSignal): Promise<ToolAnswer> {
    const sent = { path: "/tool-call", headers: { [TOOL_CALL_ID_HEADER]: callId }, body };
    return this.#repeatedly(sender, sent, signal, answerOf);
  }

  /** Repeats the request until there is an answer. */
  async #repeatedly<T>(sender: Sender, sent: Sent, signal: AbortSignal, read: Reading<T>): Promise<T> {
    for (let pause: number = BACK_OFF_MS.first; ; pause = Math.min(pause * 2, BACK_OFF_MS.most)) {
      const answer = await this.#once(sender, sent, signal, read);
      if (answer !== undefined) return answer;
      await sleep(pause, undefined, { signal });
    }
  }

  /** Undefined: the gateway or the tool call server is away. */
  async #once<T>(
    sender: Sender,
    { path, headers, body }: Sent,
    signal: AbortSignal,
    read: Reading<T>,
  ): Promise<T | undefined> {
    try {
      const response = await this.#client.send({
        method: "POST",
        path,
        requestId: sender.requestId,
        headers: {
          "content-type": "application/json",
          [CALLBACK_TOKEN_HEADER]: sender.token,
          [EXECUTION_ID_HEADER]: sender.executionId,
          ...headers,
        },
        body,
        signal,
        timeoutMs: 0,
      });
      const { statusCode: status } = response;
      if (status < 500) return read(status, (await answerBytes(response)).toString("utf8"));
      await response.body.dump();
      return undefined;
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  async close(): Promise<void> {
    await this.#client.close();
  }
}

function recordOf(status: number, text: string): ToolRefusal | { kind: "recorded" } {
  return status === 200 ? { kind: "recorded" } : refusalOf(status, text);
}

function answerOf(status: number, text: string): ToolAnswer {
  if (status === 200) return resultOf(text);
  return status === 408 ? { kind: "unanswered" } : refusalOf(status, text);
}

function refusalOf(status: number, text: string): ToolRefusal {
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

/**
 * The text of one member of a JSON object, exactly as it stands there: large numbers, order and depth survive. For texts
 * that JSON.parse accepts. Pure.
 */
export function rawMember(text: string, name: string): string | undefined {
  let at = text.indexOf("{") + 1;
  let found: string | undefined;
  for (;;) {
    at = skipSpace(text, at);
    if (at >= text.length || text[at] === "}") return found;
    const keyEnd = endOfString(text, at);
    const key = JSON.parse(text.slice(at, keyEnd)) as string;
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = endOfValue(text, start);
    // Of two members with one name the last one counts, as in JSON.parse.
    if (key === name) found = text.slice(start, end).trimEnd();
    at = text[end] === "," ? end + 1 : end;
  }
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && " \t\n\r".includes(text[at] as string)) at++;
  return at;
}

/** The index behind the closing quote of the string that starts at `from`. */
function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** The index of the comma or brace behind the value that starts at `from`. */
function endOfValue(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at) - 1;
    else if (char === "{" || char === "[") depth++;
    else if (depth > 0 && (char === "}" || char === "]")) depth--;
    else if (depth === 0 && (char === "," || char === "}")) return at;
  }
  return text.length;
}
