/**
 * Calls between our components: keep-alive connections, request id and internal token on each call, bounded times,
 * failures as ServiceError. Error texts of other components never travel further: only their code does. An answer that is
 * read as a whole has a largest size, and the time that its call may take; beyond either its connection is closed.
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
  /** Code and status when the component cannot be reached. */
  unreachable: ErrorCode;
  /** Code and status when the head of the answer does not come in time; as unreachable when it is absent. */
  late?: ErrorCode;
  /** Longest wait for the head of an answer, where a call says nothing else. */
  timeoutMs?: number;
  connections?: number;
  /** How long making a connection may take; 10 s where it is absent. */
  connectMs?: number;
  /** How long a request waits for a component that refuses connections, as one does that is being replaced; 0 where it is absent. */
  refusedMs?: number;
  /** Makes each connection, in place of a socket to the address. Throws where none can be made. */
  connect?: () => Duplex;
  /** What it shows to a component with an https address, and takes it by. */
  tls?: TlsIdentity | undefined;
  /** The name that the component's certificate must have, where that is not the host of `baseUrl`. */
  certifiedAs?: string;
}

export interface InnerRequest {
  method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  path: string;
  requestId?: string | undefined;
  /** The span that the call belongs to. */
  trace?: TraceContext | undefined;
  headers?: Record<string, string>;
  body?: Dispatcher.DispatchOptions["body"];
  signal?: AbortSignal | undefined;
  /** Longest wait for the head of the answer, and then for its body where that is read as a whole; 0 waits as long as the caller's signal allows. */
  timeoutMs?: number;
}

export interface JsonRequest extends InnerRequest {
  /** Of the answer; as large as any message of ours when it is absent. */
  maxBytes?: number;
  /** Of an answer that a program had a part in. */
  bounds?: JsonBounds;
}

export type InnerResponse = Dispatcher.ResponseData;

/** Idle connections are closed by us, before a server that ends closes them (LATE_REQUESTS_MS in ./server.ts). */
const CLIENT_IDLE_MS = 1000;
const HEAD_TIMEOUT_MS = 30_000;
const HEAD_IS_LATE = "UND_ERR_HEADERS_TIMEOUT";
/** More than the largest message of ours has. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** How many connections a client has where its options say nothing else. */
export const INNER_CONNECTIONS = 256;
/** Between attempts to connect. */
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

/** undici takes any duplex stream, its types know sockets only. */
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

/** Connects in memory to a server of this process. */
function withinProcessFirst(connect: buildConnector.connector): buildConnector.connector {
  return (address, done) => {
    const inMemory = connectInSameProcess(address.hostname, Number(address.port));
    if (inMemory === undefined) connect(address, done);
    else connectorOf(() => inMemory)(address, done);
  };
}

/** Requests that it holds up have sent nothing yet, not a byte of their body. */
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
  /** Of every path. */
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

  /** Sends a request and returns the answer, whatever its status. Throws only when there is none. */
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

  /** Sends a request that must succeed and reads its JSON answer. */
  async json<T>({ maxBytes, bounds, ...call }: JsonRequest): Promise<T> {
    return this.whole(call, (answer) =>
      this.read(answer, (response) => jsonAnswer<T>(response, maxBytes, bounds)),
    );
  }

  /** Sends a request and has its whole answer read, whatever its status. A caller without a signal waits for the body for the call's time at most. */
  async whole<T>(call: InnerRequest, read: (response: InnerResponse) => Promise<T>): Promise<T> {
    if (call.signal !== undefined) return read(await this.send(call));
    const body = new AbortController();
    const response = await this.send({ ...call, signal: body.signal });
    const timeoutMs = call.timeoutMs || this.#options.timeoutMs || HEAD_TIMEOUT_MS;
    const timer = setTimeout(() => body.abort(new errors.BodyTimeoutError()), timeoutMs);
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

  /** Reads an answer that must be a success. What `read` throws that is no ServiceError is a broken connection, or as good as one. */
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

/** The cause of a ServiceError for an answer beyond its bounds. */
export class AnswerTooLarge extends Error {}

/** The JSON of an answer, within its bounds. */
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

/** The body of an answer. One that is longer is not read on: its connection is closed, and this rejects. */
export async function answerBytes(
  { headers, body }: InnerResponse,
  maxBytes = MAX_ANSWER_BYTES,
): Promise<Buffer> {
  // No more than was announced can come.
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

/** Reads the error body of an inner answer. The message stays inside: only code, status, details and an exceeded quota are taken over. */
export async function innerError(response: InnerResponse): Promise<ServiceError> {
  let body: unknown;
  const timer = setTimeout(() => response.body.destroy(), ERROR_BODY_MS);
  try {
    let text = "";
    for await (const chunk of response.body) {
      text += chunk;
      if (text.length > MAX_ERROR_BYTES) break;
    }
    body = JSON.parse(text);
  } catch {
    // An answer without a readable body: the status is all there is.
  } finally {
    clearTimeout(timer);
  }
  return innerErrorOf(response.statusCode, body);
}

/** The same of a body that was read. */
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
