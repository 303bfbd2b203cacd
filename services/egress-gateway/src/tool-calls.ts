/**
 * Passes the tool calls of a paused program on to the tool call server and its answers back. The callback token says which
 * execution calls and which tools were declared; shown alone it is the grant as well. A call waits as long as the tool call
 * server lets it (there is no other timer), or not at all when it is only to be recorded. When the caller goes, its call to the tool call server ends; the call itself
 * stays recorded there, and a repeat of it is charged only once.
 */
import { type Callback, openCallback, openGrant, type SealKeys } from "@svc/capabilities";
import {
  CALLBACK_TOKEN_HEADER,
  EXECUTION_ID_HEADER,
  GRANT_HEADER,
  isId,
  ServiceError,
  TOOL_CALL_ID_HEADER,
  TOOL_CALL_ID_PATTERN,
  TOOL_CALL_WAIT_HEADER,
  toolCallSchema,
} from "@svc/contracts";
import {
  type Config,
  type FastifyReply,
  type FastifyRequest,
  InnerClient,
  innerError,
  parseOrRefuse,
} from "@svc/service-kit";
import type { Admission } from "./admission.ts";
import { nowSeconds } from "./authority.ts";
import { readJson } from "./body.ts";
import { refusals } from "./refusals.ts";

/** Calls that wait at once; each holds two connections. */
const MAX_CALLS = 10_000;

const SMALL_BYTES = 16 * 1024;

export class ToolCalls {
  readonly #keys: SealKeys;
  readonly #admission: Admission;
  readonly #maxBytes: number;
  readonly #server: InnerClient;
  readonly #waiting = new Set<AbortController>();

  constructor(keys: SealKeys, admission: Admission, config: Config) {
    this.#keys = keys;
    this.#admission = admission;
    this.#maxBytes = config.EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES;
    this.#server = new InnerClient({
      baseUrl: config.EGRESS_GATEWAY_TOOL_CALL_SERVER_URL,
      internalToken: config.SVC_INTERNAL_SERVICE_TOKEN,
      unreachable: "upstream_unavailable",
      connections: MAX_CALLS,
    });
  }

  async handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { callback, callId } = this.#caller(request);
    const grant = this.#grant(request, callback);
    const { bytes, value } = await readJson(
      request,
      this.#maxBytes,
      () => new ServiceError("tool_call_too_large", `A tool call may have ${this.#maxBytes} bytes.`),
    );
    const { tool_name } = parseOrRefuse(toolCallSchema, value);
    if (grant.grant_id !== callback.grant_id) await this.#admission.check(callback);
    await this.#admission.charge(grant, () => {
      if (!callback.allowed_tool_names.includes(tool_name)) throw new ServiceError("tool_not_declared");
      return { kind: "tool_call", callId };
    });
    return this.#forward(request, reply, callback, callId, bytes);
  }

  /** Ends all waiting calls; their callers repeat them elsewhere. */
  stop(): void {
    const reason = new ServiceError("shutting_down", undefined, { headers: { connection: "close" } });
    for (const wait of this.#waiting) wait.abort(reason);
  }

  async close(): Promise<void> {
    await this.#server.close();
  }

  #caller({ headers }: FastifyRequest): { callback: Callback; callId: string } {
    const [execution, callId, token] = [EXECUTION_ID_HEADER, TOOL_CALL_ID_HEADER, CALLBACK_TOKEN_HEADER].map(
      (name) => headers[name],
    );
    if (typeof execution !== "string" || typeof callId !== "string" || typeof token !== "string") {
      throw new ServiceError(
        "missing_headers",
        "X-Execution-ID, X-Tool-Call-ID and X-Callback-Token are required.",
      );
    }
    if (!isId(execution)) throw new ServiceError("invalid_id");
    if (!TOOL_CALL_ID_PATTERN.test(callId)) {
      throw new ServiceError("invalid_id", "The tool call id is not valid.");
    }
    const callback = refusals(() => openCallback(this.#keys, token, nowSeconds()));
    if (callback.exec_id !== execution) throw new ServiceError("callback_refused");
    return { callback, callId };
  }

  /** Who pays: the grant that is shown, which must be of the same execution, or else the callback token's own. */
  #grant({ headers }: FastifyRequest, callback: Callback): { grant_id: string; exec_id: string } {
    if (headers[GRANT_HEADER] === undefined) return callback;
    const grant = refusals(() => openGrant(this.#keys, headers[GRANT_HEADER], nowSeconds()));
    if (grant.exec_id !== callback.exec_id) throw new ServiceError("callback_refused");
    return grant;
  }

  async #forward(
    request: FastifyRequest,
    reply: FastifyReply,
    callback: Callback,
    callId: string,
    body: Buffer,
  ): Promise<FastifyReply> {
    if (this.#waiting.size >= MAX_CALLS) {
      throw new ServiceError("upstream_unavailable", "Too many tool calls wait.", { status: 503 });
    }
    const wait = new AbortController();
    reply.raw.once("close", () => {
      if (!reply.raw.writableFinished) wait.abort(new ServiceError("internal_error", "The caller left."));
    });
    if (reply.raw.destroyed) throw new ServiceError("internal_error", "The caller left.");
    this.#waiting.add(wait);
    try {
      const upstream = await this.#server.send({
        method: "POST",
        path: "/tool-call",
        requestId: request.id,
        headers: {
          "content-type": "application/json",
          [EXECUTION_ID_HEADER]: callback.exec_id,
          [TOOL_CALL_ID_HEADER]: callId,
          [CALLBACK_TOKEN_HEADER]: callback.callback_token,
          ...(request.headers[TOOL_CALL_WAIT_HEADER] === "no" && { [TOOL_CALL_WAIT_HEADER]: "no" }),
        },
        body,
        signal: wait.signal,
        timeoutMs: 0,
      });
      if (upstream.statusCode !== 200 && upstream.statusCode !== 202) throw await innerError(upstream);
      reply.code(upstream.statusCode);
      const length = upstream.headers["content-length"];
      reply.type("application/json; charset=utf-8");
      // A small answer costs less in one piece.
      if (Number(length) <= SMALL_BYTES) return reply.send(Buffer.from(await upstream.body.arrayBuffer()));
      if (typeof length === "string") reply.header("content-length", length);
      return reply.send(upstream.body);
    } finally {
      this.#waiting.delete(wait);
    }
  }
}
