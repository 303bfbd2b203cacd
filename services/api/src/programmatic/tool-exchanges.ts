/**
 * The API's client of the tool call server, and its callback tokens. An exchange belongs to one attempt to run a program: a
 * new attempt opens a new one, and calls of an abandoned attempt are refused.
 */
import {
  type CallAnswer,
  newCallbackToken,
  newId,
  type PausedCall,
  type PendingCall,
  type PendingCalls,
  type ProcessedResults,
  type ProgrammaticJob,
  ServiceError,
  TOOL_CALLS_BOUNDS,
  type ToolExchange,
} from "@svc/contracts";
import {
  AnswerTooLarge,
  type Config,
  errorText,
  InnerClient,
  type Log,
  type TlsIdentity,
  tokenTo,
} from "@svc/service-kit";
import type { Program } from "./state.ts";

/** How long to wait until the calls of a paused program are recorded. */
const RECORDED_MS = 10_000;
/** The longest life of a callback token. Calls of a program that lives longer are refused; its next resume runs it again with a new token. */
const MAX_TOKEN_SECONDS = 7200;

/** Allowance for the rest of a listing: for each call beside its name and arguments, and once for the listing itself. */
const AROUND_CALL = { bytes: 1024, values: 8 } as const;

type InnerRequest = Parameters<InnerClient["send"]>[0];

export interface OpeningExchange {
  /** The data from which the callback token is sealed when a worker starts the job. */
  callback: ProgrammaticJob["callback"];
  /** Resolves when the tool call server knows the exchange. */
  opened: Promise<unknown>;
}

export class ToolExchanges {
  readonly #server: InnerClient;
  readonly #gateway: InnerClient;
  readonly #config: Config;
  readonly #log: Log;

  constructor(config: Config, log: Log, tls?: TlsIdentity) {
    const client = (to: "tool-call-server" | "egress-gateway", baseUrl: string) =>
      new InnerClient({
        baseUrl,
        internalToken: tokenTo(config, "api", to),
        unreachable: "sandbox_setup_failed",
        tls,
      });
    this.#server = client("tool-call-server", config.TOOL_CALL_SERVER_URL);
    this.#gateway = client("egress-gateway", config.EGRESS_GATEWAY_URL);
    this.#config = config;
    this.#log = log;
  }

  /** Opens an exchange. It replaces an older one of the same execution. */
  open(program: Program, requestId: string): OpeningExchange {
    const tools = program.tools.map(({ name }) => name);
    const { execution_id, session_id } = program;
    const token = newCallbackToken();
    const opening = { execution_id, session_id, tools, callback_token: token };
    return {
      callback: { grant_id: newId(), token, tools, life_seconds: this.#longestSeconds() },
      opened: this.#post<ToolExchange>(this.#server, "/sessions", requestId, opening),
    };
  }

  /** The longest that a program may live: the full run time, and the longest pause after each call. */
  #longestSeconds(): number {
    const { JOB_TIMEOUT, PTC_MAX_CALLS, TOOL_CALL_REQUEST_TIMEOUT } = this.#config;
    const ms = JOB_TIMEOUT + (PTC_MAX_CALLS + 1) * TOOL_CALL_REQUEST_TIMEOUT;
    return Math.min(MAX_TOKEN_SECONDS, Math.ceil(ms / 1000));
  }

  /**
   * The given calls as they were recorded, in that order. Throws state_too_large when together they have more bytes than a state may have,
   * or more JSON values than allowed.
   */
  async recorded(
    executionId: string,
    callIds: readonly string[],
    requestId: string,
  ): Promise<readonly PausedCall[]> {
    const calls = await this.#pending(executionId, callIds, requestId);
    const byId = new Map(calls.map((call) => [call.call_id, call]));
    return callIds.map((id) => {
      const call = byId.get(id);
      if (call === undefined) throw new ServiceError("sandbox_execution_failed");
      return call;
    });
  }

  async #pending(
    executionId: string,
    callIds: readonly string[],
    requestId: string,
  ): Promise<readonly PendingCall[]> {
    const { depth, values } = TOOL_CALLS_BOUNDS;
    const listing = this.#server.json<PendingCalls>({
      method: "GET",
      path: `/sessions/${executionId}/pending?wait_ms=${RECORDED_MS}&call_ids=${callIds.join(",")}`,
      requestId,
      maxBytes: this.#config.PTC_MAX_STATE_BYTES + (1 + callIds.length) * AROUND_CALL.bytes,
      bounds: { depth, values: values + callIds.length * AROUND_CALL.values },
    });
    const { pending_calls } = await listing.catch((error: ServiceError) => {
      throw error.cause instanceof AnswerTooLarge ? new ServiceError("state_too_large") : error;
    });
    return pending_calls;
  }

  async answer(executionId: string, answers: readonly CallAnswer[], requestId: string): Promise<void> {
    await this.#post<ProcessedResults>(
      this.#server,
      `/sessions/${executionId}/results`,
      requestId,
      undefined,
      resultsBody(answers),
    );
  }

  /** Closes the exchange and revokes its grant, in the background. If that fails, both expire. */
  end(executionId: string, grantId: string | undefined, requestId: string): void {
    this.#inBackground(this.#server, { method: "DELETE", path: `/sessions/${executionId}`, requestId });
    this.revoke(grantId, requestId);
  }

  /** Revokes the grant of an exchange that is no longer used, in the background. */
  revoke(grantId: string | undefined, requestId: string): void {
    if (grantId === undefined) return;
    this.#inBackground(this.#gateway, {
      method: "POST",
      path: `/internal/egress-grants/${grantId}/revoke`,
      requestId,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ reason: "completed" }),
    });
  }

  #inBackground(client: InnerClient, request: InnerRequest): void {
    client
      .whole(request, ({ body }) => body.dump())
      .catch((error: Error) => {
        const { method, path, requestId: request_id } = request;
        this.#log.warn({ err: errorText(error), method, path, request_id }, "closing a tool exchange failed");
      });
  }

  #post<T>(client: InnerClient, path: string, requestId: string, body: unknown, text?: string): Promise<T> {
    return client.json<T>({
      method: "POST",
      path,
      requestId,
      headers: { "content-type": "application/json" },
      body: text ?? JSON.stringify(body),
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.#server.close(), this.#gateway.close()]);
  }
}

/** Builds the body as text, because results are already JSON text. */
function resultsBody(answers: readonly CallAnswer[]): string {
  const items = answers.map(({ call_id, outcome }) =>
    "result_json" in outcome
      ? `{"call_id":${JSON.stringify(call_id)},"result":${outcome.result_json}}`
      : JSON.stringify({ call_id, result: null, is_error: true, error_message: outcome.error_message }),
  );
  return `{"results":[${items.join(",")}]}`;
}
