/** Sends requests to the service: address, credentials, errors as classes, and retries where the service says that they are safe. */
import type { ErrorBody } from "./api.generated.ts";
import { ConnectionFailedError, SvcError } from "./error.ts";
import { CODES } from "./errors.generated.ts";
import { piecesOf } from "./pieces.ts";

export interface SvcOptions {
  /** Address of the service, with or without /v1. */
  baseUrl: string;
  /** Access token or API key. Omit it if the service requires none. */
  token?: string | undefined;
  /** Replaces the global fetch, for a proxy, a test, or other TLS settings. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Maximum automatic retries of a request whose error says that a retry is safe. Default: 2. */
  maxRetries?: number | undefined;
}

/** What every method takes as its last argument. */
export interface CallOptions {
  /** Aborts the call. If the call waits for a run, the run is cancelled. */
  signal?: AbortSignal | undefined;
  /** Sent as X-Request-Id; appears in the logs of the service. */
  requestId?: string | undefined;
}

export interface Request extends CallOptions {
  method: "GET" | "POST" | "DELETE";
  /** Without /v1. */
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Blob;
  /** Retries after `rate_limited` until the service admits the request, without a limit on retries or time. */
  waitsOutLimits?: boolean;
}

const MAX_RETRIES = 2;
/** Longest pause before a retry, except with `waitsOutLimits`. An error that demands more is thrown. */
const MAX_PAUSE_MS = 30_000;
/** Longest delay of setTimeout; a longer one fires at once. */
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
    // A browser's fetch throws if it is called as a method of this object.
    this.#fetch = (...call) => fetch(...call);
    this.#maxRetries = maxRetries;
  }

  /** Returns a successful response. Otherwise throws SvcError, the reason of an aborted signal, or NotReadableError of a file to upload. */
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

  /** For a request whose success is 202 or 204. Any other successful response does not come from the service. */
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
        // The service never redirects. The target of a proxy's redirect, such as a login page, would get the program or respond itself.
        redirect: "manual",
      });
    } catch (cause) {
      signal?.throwIfAborted();
      const why: unknown = Object(cause).cause;
      // A file of the caller that cannot be read is not a failure of the service.
      if (why instanceof DOMException && why.name === "NotReadableError") throw why;
      throw new ConnectionFailedError(`The service at ${this.#base} ${whyNone(why)}.`, {}, { cause });
    }
    if (response.ok) return response;
    const told = await bodyOf(response);
    signal?.throwIfAborted();
    throw errorOf(response.status, told, Number(response.headers.get("retry-after") ?? Number.NaN));
  }
}

/** Node's fetch waits 300 s for the start of a response. A long run may take longer. */
const whyNone = (why: unknown): string =>
  Object(why).code === "UND_ERR_HEADERS_TIMEOUT"
    ? "did not answer for as long as fetch waits; watch long runs by stream, or make them jobs"
    : "cannot be reached";

/** The JSON of a successful response. */
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

/** Errors of the service have at most 16 KiB. A longer body comes from something else, and may never end. */
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

/** `body`: the error body of the service, or anything that a proxy sent. */
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
