/** Requests to the service: address, credentials, errors as classes, and repeats where the service says that they are safe. */
import type { ErrorBody } from "./api.generated.ts";
import { ConnectionFailedError, SvcError } from "./error.ts";
import { CODES } from "./errors.generated.ts";
import { piecesOf } from "./pieces.ts";

export interface SvcOptions {
  /** Address of the service, with or without /v1. */
  baseUrl: string;
  /** Access token or API key; without one where the service wants none. */
  token?: string | undefined;
  /** In the place of the global fetch: a proxy, a test, other TLS settings. */
  fetch?: typeof globalThis.fetch | undefined;
  /** How often a request is repeated by itself, where its error says that it is safe (2). */
  maxRetries?: number | undefined;
}

/** What every method takes as its last argument. */
export interface CallOptions {
  /** Ends the call. A run that waits for it is cancelled. */
  signal?: AbortSignal | undefined;
  /** X-Request-Id: the logs of the service know it. */
  requestId?: string | undefined;
}

export interface Request extends CallOptions {
  method: "GET" | "POST" | "DELETE";
  /** Without /v1. */
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Blob;
  /** After `rate_limited` it comes again until it is let in, however often and however late that is. */
  waitsOutLimits?: boolean;
}

const MAX_RETRIES = 2;
/** No longer than this is waited before a repeat, but for limits that are waited out. */
const MAX_PAUSE_MS = 30_000;
/** Of setTimeout; a longer one ends at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const PAUSE_MS = 500;

export class Http {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof globalThis.fetch;
  readonly #maxRetries: number;

  constructor({ baseUrl, token, fetch = globalThis.fetch, maxRetries = MAX_RETRIES }: SvcOptions) {
    this.#base = `${baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1`;
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    // As a method of this object a browser's fetch refuses to run.
    this.#fetch = (...call) => fetch(...call);
    this.#maxRetries = maxRetries;
  }

  /** The answer of a success. Throws SvcError otherwise, the signal's reason when it is aborted, and NotReadableError of a file to upload. */
  async send(request: Request): Promise<Response> {
    for (let repeats = 0; ; ) {
      try {
        return await this.#once(request);
      } catch (error) {
        if (!(error instanceof SvcError)) throw error;
        const isLimited =
          request.waitsOutLimits === true && error.code === "rate_limited" && this.#maxRetries > 0;
        const isSame = CODES[error.code]?.repeat === "same" && repeats < this.#maxRetries;
        if (!isLimited && !isSame) throw error;
        const ms = error.retryAfter === undefined ? PAUSE_MS * 2 ** repeats : error.retryAfter * 1000;
        if (ms > MAX_PAUSE_MS && !isLimited) throw error;
        await pause(Math.min(ms, MAX_TIMER_MS), request.signal);
        if (!isLimited) repeats++;
      }
    }
  }

  async json<T>(request: Request): Promise<T> {
    return parsed(await this.send(request), request.signal);
  }

  /** A request whose success has no body. Any other answer is not the service's, whatever its status says. */
  async done(request: Request): Promise<void> {
    const { status, body } = await this.send(request);
    if (status === 202 || status === 204) return;
    await body?.cancel().catch(() => undefined);
    throw notOurs(status);
  }

  async #once({ method, path, headers, body, signal, requestId }: Request): Promise<Response> {
    let response: Response;
    try {
      response = await this.#fetch(this.#base + path, {
        method,
        headers: {
          ...this.#headers,
          ...(requestId === undefined ? {} : { "x-request-id": requestId }),
          ...headers,
        },
        ...(body === undefined ? {} : { body }),
        ...(signal === undefined ? {} : { signal }),
        // The service redirects nowhere; who does, a page to log in for instance, would get the program or give its own answer.
        redirect: "manual",
      });
    } catch (cause) {
      signal?.throwIfAborted();
      const why: unknown = Object(cause).cause;
      // A fault of the caller's own file says nothing of the service.
      if (why instanceof DOMException && why.name === "NotReadableError") throw why;
      throw new ConnectionFailedError(`The service at ${this.#base} ${whyNone(why)}.`, {}, { cause });
    }
    if (response.ok) return response;
    const told = await bodyOf(response);
    signal?.throwIfAborted();
    throw errorOf(response.status, told, Number(response.headers.get("retry-after") ?? Number.NaN));
  }
}

/** Node's fetch waits 300 s for the beginning of an answer, which that of a long run may take. */
const whyNone = (why: unknown): string =>
  Object(why).code === "UND_ERR_HEADERS_TIMEOUT"
    ? "did not answer for as long as fetch waits; watch long runs by stream, or make them jobs"
    : "cannot be reached";

/** The JSON of a success. */
export async function parsed<T>(response: Response, signal: AbortSignal | undefined): Promise<T> {
  try {
    return (await response.json()) as T;
  } catch (cause) {
    signal?.throwIfAborted();
    throw new ConnectionFailedError(
      "The answer is not one of the service.",
      { status: response.status },
      { cause },
    );
  }
}

/** Errors of the service have at most 16 KiB; what is longer comes from something else, and may never end. */
const MAX_ERROR_BYTES = 64 * 1024;

async function bodyOf({ body }: Response): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  try {
    if (body === null) return undefined;
    for await (const piece of piecesOf(body)) {
      bytes += piece.length;
      if (bytes > MAX_ERROR_BYTES) return undefined;
      text += decoder.decode(piece, { stream: true });
    }
    return JSON.parse(text + decoder.decode());
  } catch {
    return undefined;
  }
}

/** `body`: what the service said, or anything that a proxy did. */
export function errorOf(status: number, body: unknown, retryAfter?: number): SvcError {
  const { error, message, request_id, details } = Object(body) as Partial<ErrorBody>;
  if (typeof error !== "string" || typeof message !== "string") return notOurs(status);
  const type = CODES[error]?.type ?? SvcError;
  return new type(message, {
    code: error,
    status,
    requestId: request_id,
    details,
    retryAfter: retryAfter !== undefined && Number.isFinite(retryAfter) ? retryAfter : undefined,
  });
}

const notOurs = (status: number) =>
  new ConnectionFailedError(`The answer ${status} is not one of the service.`, { status });

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}
