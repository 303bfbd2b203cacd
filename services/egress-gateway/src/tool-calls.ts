/**
 * Forwards tool calls of a program to the tool call server, and its answers back. The callback token names the execution and its declared tools;
 * without a grant beside it, it also serves as the grant. `POST /tool-call` waits for the result of one call. It waits a little longer than the
 * tool call server does, before that server counts as hung. `POST /tool-calls` charges and records several calls, all or none, and waits for no
 * result. When the caller disconnects, its request to the tool call server ends. What was recorded stays recorded, and a repeat of it is charged
 * only once.
 */
import { type Callback, openCallback, openGrant, type SealKeys } from "@svc/capabilities";
import {
  CALLBACK_TOKEN_HEADER,
  EXECUTION_ID_HEADER,
  GRANT_HEADER,
  isId,
  JSON_BOUNDS,
  type JsonBounds,
  type RecordToolCalls,
  recordToolCallsSchema,
  ServiceError,
  TOOL_CALL_BOUNDS,
  TOOL_CALL_ID_HEADER,
  TOOL_CALL_ID_PATTERN,
  TOOL_CALLS_BOUNDS,
  toolCallSchema,
} from "@svc/contracts";
import {
  type Config,
  clientGone,
  type FastifyReply,
  type FastifyRequest,
  InnerClient,
  innerError,
  LongRequests,
  parseOrRefuse,
  type TlsIdentity,
  tokenTo,
} from "@svc/service-kit";
import type { Admission } from "./admission.ts";
import { nowSeconds } from "./authority.ts";
import { readJson } from "./body.ts";
import { refusals } from "./refusals.ts";

/** Most calls that wait for their results at once; each holds two connections. This limit refuses no call that is only recorded. */
const MAX_CALLS = 10_000;
/** Connections to the tool call server that waiting calls leave to other calls. */
const FREE_CONNECTIONS = 256;

const SMALL_BYTES = 16 * 1024;

/** How a kind of request is forwarded to the tool call server: its path there, its own headers, and how to read its calls from the body. */
interface Way {
  path: string;
  /** Bounds of the body: those of a call's arguments, plus what the message has around them. */
  bounds: JsonBounds;
  headers: Record<string, string>;
  /** How long a call may legitimately wait for its answer. */
  waitMs: number;
  callsIn: (body: unknown) => RecordToolCalls["calls"];
}

export class ToolCalls {
  readonly #keys: SealKeys;
  readonly #admission: Admission;
  readonly #maxBytes: number;
  readonly #longestMs: number;
  readonly #upstreamMs: number;
  readonly #server: InnerClient;
  readonly #waiting = new LongRequests();
  /** Calls that are only recorded; they take no place of a waiting call. */
  readonly #recording = new LongRequests();

  constructor(keys: SealKeys, admission: Admission, config: Config, tls?: TlsIdentity) {
    this.#keys = keys;
    this.#admission = admission;
    this.#maxBytes = config.EGRESS_GATEWAY_MAX_TOOL_CALL_BYTES;
    this.#longestMs = config.TOOL_CALL_REQUEST_TIMEOUT;
    this.#upstreamMs = config.EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS;
    this.#server = new InnerClient({
      baseUrl: config.EGRESS_GATEWAY_TOOL_CALL_SERVER_URL,
      internalToken: tokenTo(config, "egress-gateway", "tool-call-server"),
      unreachable: "upstream_unavailable",
      late: "upstream_timeout",
      connections: MAX_CALLS + FREE_CONNECTIONS,
      tls,
    });
  }

  /** Waits for the result of a call and answers with it. */
  async answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const call_id = callIdOf(request);
    return this.#pass(request, reply, {
      path: "/tool-call",
      bounds: TOOL_CALL_BOUNDS,
      headers: { [TOOL_CALL_ID_HEADER]: call_id },
      waitMs: this.#longestMs,
      callsIn: (body) => [{ call_id, call: parseOrRefuse(toolCallSchema, body) }],
    });
  }

  /** Answers when all calls are recorded. */
  async record(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.#pass(request, reply, {
      path: "/tool-calls",
      bounds: TOOL_CALLS_BOUNDS,
      headers: {},
      waitMs: 0,
      callsIn: (body) => parseOrRefuse(recordToolCallsSchema, body).calls,
    });
  }

  /** Ends all open calls, and those that still arrive; their callers repeat them elsewhere. */
  stop(): void {
    this.#waiting.stop();
    this.#recording.stop();
  }

  async close(): Promise<void> {
    await this.#server.close();
  }

  /** Admits and charges all calls of a request, or refuses them all; then forwards the body unchanged. */
  async #pass(request: FastifyRequest, reply: FastifyReply, way: Way): Promise<FastifyReply> {
    const callback = this.#caller(request);
    const grant = this.#grant(request, callback);
    // Several calls together have the same limit as one, so none of them exceeds the size that it may have alone.
    const { bytes, value } = await readJson(
      request,
      this.#maxBytes,
      way.bounds,
      () => new ServiceError("tool_call_too_large", this.#largest),
    );
    const calls = way.callsIn(value);
    if (grant.grant_id !== callback.grant_id) await this.#admission.check(callback);
    await this.#admission.charge(grant, () => {
      const areDeclared = calls.every(({ call }) => callback.allowed_tool_names.includes(call.tool_name));
      if (!areDeclared) throw new ServiceError("tool_not_declared");
      return { kind: "tool_calls", callIds: calls.map(({ call_id }) => call_id) };
    });
    return this.#forward(request, reply, callback, way, bytes);
  }

  get #largest(): string {
    const { depth, values } = JSON_BOUNDS;
    return `A tool call may have ${this.#maxBytes} bytes, ${depth} levels and ${values} values.`;
  }

  #caller({ headers }: FastifyRequest): Callback {
    const [execution, token] = [EXECUTION_ID_HEADER, CALLBACK_TOKEN_HEADER].map((name) => headers[name]);
    if (typeof execution !== "string" || typeof token !== "string") throw missingHeaders();
    if (!isId(execution)) throw new ServiceError("invalid_id");
    const callback = refusals(() => openCallback(this.#keys, token, nowSeconds()));
    if (callback.exec_id !== execution) throw new ServiceError("callback_refused");
    return callback;
  }

  /** The grant that is charged: the one that the request presents, which must be of the same execution, or else the callback token's own. */
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
    way: Way,
    body: Buffer,
  ): Promise<FastifyReply> {
    const open = way.waitMs > 0 ? this.#waiting : this.#recording;
    if (open === this.#waiting && open.size >= MAX_CALLS) {
      throw new ServiceError("upstream_unavailable", "Too many tool calls wait.", { status: 503 });
    }
    const wait = new AbortController();
    const gone = clientGone(reply, new ServiceError("execution_cancelled"));
    gone.throwIfAborted();
    open.begin(wait);
    try {
      const upstream = await this.#server.send({
        method: "POST",
        path: way.path,
        requestId: request.id,
        headers: {
          "content-type": "application/json",
          [EXECUTION_ID_HEADER]: callback.exec_id,
          [CALLBACK_TOKEN_HEADER]: callback.callback_token,
          ...way.headers,
        },
        body,
        signal: AbortSignal.any([wait.signal, gone]),
        timeoutMs: way.waitMs + this.#upstreamMs,
      });
      if (upstream.statusCode !== 200) throw await innerError(upstream);
      const length = upstream.headers["content-length"];
      reply.type("application/json; charset=utf-8");
      // A small answer costs less in one piece.
      if (Number(length) <= SMALL_BYTES) return reply.send(Buffer.from(await upstream.body.arrayBuffer()));
      if (typeof length === "string") reply.header("content-length", length);
      return reply.send(upstream.body);
    } finally {
      open.end(wait);
    }
  }
}

function callIdOf({ headers }: FastifyRequest): string {
  const callId = headers[TOOL_CALL_ID_HEADER];
  if (typeof callId !== "string") throw missingHeaders();
  if (!TOOL_CALL_ID_PATTERN.test(callId)) {
    throw new ServiceError("invalid_id", "The tool call id is not valid.");
  }
  return callId;
}

const missingHeaders = () =>
  new ServiceError(
    "missing_headers",
    "X-Execution-ID and X-Callback-Token are required, and for one call X-Tool-Call-ID.",
  );
