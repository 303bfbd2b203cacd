/**
 * Calls between our components: keep-alive connections, request id and internal token on each call, bounded times, failures as
 * ServiceError. Never passes on an error text of another component, only its code. An answer that is read as a whole is bounded in
 * size, and in time by its call; beyond either bound its connection is closed.
 */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  type ErrorCode,
  errorBodySchema,
  exceededJsonBound,
  INTERNAL_TOKEN_HEADER,
  isErrorCode,
  type JsonBounds,
  quotaExceeded,
  quotaSchema,
  ServiceError,
  type TraceContext,
} from "@svc/contracts";
import { buildConnector, type Dispatcher, errors, Pool } from "undici";
import { connectInSameProcess } from "./same-process.ts";
import { knownErrorCode } from "./server.ts";
import type { TlsIdentity } from "./tls.ts";

export interface InnerClientOptions {
  baseUrl: string;
  internalToken?: string;
  /** Error when the component cannot be reached. */
  unreachable: ErrorCode;
  /** Error when the head of the answer does not arrive in time; `unreachable` when absent. */
  late?: ErrorCode;
  /** Longest wait for the head of an answer, unless the call sets its own. */
  timeoutMs?: number;
  connections?: number;
  /** Longest time to open a connection; 10 s when absent. */
  connectMs?: number;
  /** How long a request waits for a component that refuses connections, for example while it is replaced; 0 when absent. */
  refusedMs?: number;
  /** Opens each connection instead of a socket to the address. Throws when it cannot. */
  connect?: () => Duplex;
  /** Own certificate, and the authority that verifies the other one, for components with an https address. */
  tls?: TlsIdentity | undefined;
  /** The name that the component's certificate must have, where that is not the host of `baseUrl`. */
  certifiedAs?: string;
}

export interface InnerRequest {
  method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  path: string;
  requestId?: string | undefined;
  /** The parent span of the call. */
  trace?: TraceContext | undefined;
  headers?: Record<string, string>;
  body?: Dispatcher.DispatchOptions["body"];
  signal?: AbortSignal | undefined;
  /**
   * Longest wait for the head of the answer, and then for its body when it is read as a whole without a signal. 0 waits as long as
   * the caller's signal allows.
   */
  timeoutMs?: number;
}

export interface JsonRequest extends InnerRequest {
  /** Largest size of the answer; when absent, large enough for any internal message. */
  maxBytes?: number;
  /** JSON bounds, for an answer that a program can influence. */
  bounds?: JsonBounds;
}

export type InnerResponse = Dispatcher.ResponseData;

/** The client closes its idle connections before a stopping server closes them (LATE_REQUESTS_MS in ./server.ts). */
const CLIENT_IDLE_MS = 1000;
const HEAD_TIMEOUT_MS = 30_000;
const HEAD_IS_LATE = "UND_ERR_HEADERS_TIMEOUT";
/** Larger than any internal message. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** Connections of a client whose options name no other number. */
export const INNER_CONNECTIONS = 256;
/** Pause between attempts to connect. */
const AGAIN_MS = 50;

function connectorWith(options: InnerClientOptions): buildConnector.connector {
  const { tls, connectMs, certifiedAs, connect: open } = options;
  if (open !== undefined) return connectorOf(open);
  const times = connectMs === undefined ? {} : { timeout: connectMs };
  if (tls === undefined) return withinProcessFirst(buildConnector(times));
  const fixed = { ...times, ...(certifiedAs === undefined ? {} : { servername: certifiedAs }) };
  let { material } = tls;
  let connect = buildConnector({ ...material, ...fixed });
  return (address, done) => {
    if (tls.material !== material) {
      material = tls.material;
      connect = buildConnector({ ...material, ...fixed });
    }
    connect(address, done);
  };
}

/** undici accepts any duplex stream, although its types allow only sockets. */
function connectorOf(open: () => Duplex): buildConnector.connector {
  return (_address, done) =>
    queueMicrotask(() => {
      try {
        done(null, open() as Socket);
      } catch (error) {
        done(error as Error, null);
      }
    });
}

/** Connects in memory when a server of this process listens at the address. */
function withinProcessFirst(connect: buildConnector.connector): buildConnector.connector {
  return (address, done) => {
    const inMemory = connectInSameProcess(address.hostname, Number(address.port));
    if (inMemory === undefined) connect(address, done);
    else connectorOf(() => inMemory)(address, done);
  };
}

/** Retries refused connections. That is safe: requests that wait here have not sent a single byte. */
function connectorThatWaits(connect: buildConnector.connector, longestMs: number): buildConnector.connector {
  return (address, done) => {
    const end = performance.now() + longestMs;
    const attempt = () =>
      connect(address, (...outcome) => {
        const { code } = (outcome[0] ?? {}) as { code?: unknown };
        if (code === "ECONNREFUSED" && performance.now() < end) setTimeout(attempt, AGAIN_MS);
        else done(...outcome);
      });
    attempt();
  };
}

export class InnerClient {
  readonly #options: InnerClientOptions;
  readonly #pool: Pool;
  /** Prefix of every path. */
  readonly #prefix: string;

  constructor(options: InnerClientOptions) {
    this.#options = options;
    const { origin, pathname } = new URL(options.baseUrl);
    const { connections = INNER_CONNECTIONS, refusedMs } = options;
    const connect = connectorWith(options);
    this.#prefix = pathname.replace(/\/$/, "");
    this.#pool = new Pool(origin, {
      connections,
      bodyTimeout: 0,
      keepAliveTimeout: CLIENT_IDLE_MS,
      keepAliveMaxTimeout: CLIENT_IDLE_MS,
      connect: refusedMs === undefined ? connect : connectorThatWaits(connect, refusedMs),
    });
  }

  /** Sends a request and returns the answer with any status. Throws only when there is no answer. */
  async send(call: InnerRequest): Promise<InnerResponse> {
    const { internalToken, unreachable, late = unreachable, timeoutMs = HEAD_TIMEOUT_MS } = this.#options;
    try {
      return await this.#pool.request({
        method: call.method,
        path: this.#prefix + call.path,
        headers: {
          ...(call.requestId === undefined ? {} : { "x-request-id": call.requestId }),
          ...(internalToken === undefined ? {} : { [INTERNAL_TOKEN_HEADER]: internalToken }),
          ...call.trace,
          ...call.headers,
        },
        body: call.body ?? null,
        signal: call.signal ?? null,
        headersTimeout: call.timeoutMs ?? timeoutMs,
      });
    } catch (error) {
      if (call.signal?.aborted) throw call.signal.reason;
      const isLate = (error as { code?: unknown }).code === HEAD_IS_LATE;
      throw new ServiceError(isLate ? late : unreachable, undefined, { cause: error });
    }
  }

  /** Sends a request and reads its JSON answer. Throws when the answer is not a success. */
  async json<T>({ maxBytes, bounds, ...call }: JsonRequest): Promise<T> {
    return this.whole(call, (answer) =>
      this.read(answer, (response) => jsonAnswer<T>(response, maxBytes, bounds)),
    );
  }

  /**
   * Sends a request and lets `read` read the whole answer, with any status. Without a signal of the caller, the body must arrive within
   * the call's time; with one, only the signal bounds the wait for the body.
   */
  async whole<T>(call: InnerRequest, read: (response: InnerResponse) => Promise<T>): Promise<T> {
    if (call.signal !== undefined) return read(await this.send(call));
    const body = new AbortController();
    const response = await this.send({ ...call, signal: body.signal });
    const timeoutMs = call.timeoutMs ?? this.#options.timeoutMs ?? HEAD_TIMEOUT_MS;
    // 0 means no limit, as it does for the head.
    const abort = () => body.abort(new errors.BodyTimeoutError());
    const timer = timeoutMs === 0 ? undefined : setTimeout(abort, timeoutMs);
    try {
      return await read(response);
    } catch (error) {
      const isLate = body.signal.aborted && [error, (error as Error).cause].includes(body.signal.reason);
      if (!isLate) throw error;
      const { unreachable, late = unreachable } = this.#options;
      throw new ServiceError(late, undefined, { cause: body.signal.reason });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Reads an answer, and throws when it is not a success. An error of `read` other than ServiceError counts as a broken connection. */
  async read<T>(response: InnerResponse, read: (response: InnerResponse) => Promise<T>): Promise<T> {
    if (response.statusCode >= 300) throw await innerError(response);
    try {
      return await read(response);
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      throw new ServiceError(this.#options.unreachable, undefined, { cause: error });
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

/** The cause in the ServiceError for an answer that exceeds its bounds. */
export class AnswerTooLarge extends Error {}

/** Parses the JSON of an answer. Throws AnswerTooLarge beyond a bound. */
export async function jsonAnswer<T>(
  response: InnerResponse,
  maxBytes?: number,
  bounds?: JsonBounds,
): Promise<T> {
  const bytes = await answerBytes(response, maxBytes);
  const exceeded = bounds && exceededJsonBound(bytes, bounds);
  if (exceeded !== undefined) throw new AnswerTooLarge(`the answer is beyond its bound of ${exceeded}`);
  return JSON.parse(bytes.toString("utf8")) as T;
}

/** Reads the body of an answer. Stops at a body that is too long: closes its connection and rejects. */
export async function answerBytes(
  { headers, body }: InnerResponse,
  maxBytes = MAX_ANSWER_BYTES,
): Promise<Buffer> {
  // The body cannot be longer than its announced length.
  const announced = Number(headers["content-length"] ?? Number.NaN);
  if (announced <= maxBytes) return Buffer.from(await body.arrayBuffer());
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += (chunk as Buffer).length;
    if (length > maxBytes) throw new AnswerTooLarge(`the answer is longer than ${maxBytes} bytes`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

const MAX_ERROR_BYTES = 64 * 1024;
const ERROR_BODY_MS = 10_000;
const detailsSchema = errorBodySchema.shape.details.unwrap();

/** Reads the error body of an internal answer. Takes over code, status, details and an exceeded quota, but never the message. */
export async function innerError(response: InnerResponse): Promise<ServiceError> {
  let body: unknown;
  const timer = setTimeout(() => response.body.destroy(), ERROR_BODY_MS);
  try {
    body = JSON.parse((await answerBytes(response, MAX_ERROR_BYTES)).toString("utf8"));
  } catch {
    // Without a readable body, only the status is known.
  } finally {
    clearTimeout(timer);
  }
  return innerErrorOf(response.statusCode, body);
}

/** Like `innerError`, for a body that is already parsed. */
export function innerErrorOf(status: number, body: unknown): ServiceError {
  const { error, details: given, quota } = Object(body) as Record<string, unknown>;
  const cause = `inner answer ${status}${isErrorCode(error) ? `: ${error}` : ""}`;
  const exceeded = error === "quota_exceeded" ? quotaSchema.safeParse(quota).data : undefined;
  if (exceeded !== undefined) return quotaExceeded(exceeded, cause);
  const details = detailsSchema.safeParse(given);
  return new ServiceError(knownErrorCode(error), undefined, {
    status,
    cause,
    ...(details.success ? { details: details.data } : {}),
  });
}
