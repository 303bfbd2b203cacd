/**
 * Reads a request body chunk by chunk, on demand. Bounds its bytes and the time spent waiting for the client: a fixed time
 * plus a second for each MiB that has arrived. Optionally bounds the longest silence, too. Time for our own processing does
 * not count.
 */
import type { IncomingMessage } from "node:http";
import { byteSize, ServiceError } from "@svc/contracts";

export interface BodyReaderLimits {
  maxBytes: number;
  /** BODY_TIMEOUT_MS. */
  timeoutMs: number;
  silenceMs?: number;
  /** Makes the error for a body that arrives too slowly. */
  late: () => ServiceError;
}

/** The client closed its connection before its body was complete: nobody reads the answer. */
export class BodyBrokenOff extends ServiceError {
  constructor() {
    super("invalid_request", "The request body broke off.");
  }
}

const EVENTS = ["readable", "end", "error", "close"] as const;
const MIB = 2 ** 20;
const MS_PER_MIB = 1000;

export class BodyReader {
  readonly #request: IncomingMessage;
  readonly #limits: BodyReaderLimits;
  #bytes = 0;
  #waitedMs = 0;

  constructor(request: IncomingMessage, limits: BodyReaderLimits) {
    this.#request = request;
    this.#limits = limits;
  }

  /** The next bytes; undefined at the end of the body. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      const chunk = this.#request.read() as Buffer | null;
      if (chunk !== null) return this.#count(chunk);
      if (this.#request.readableEnded) return undefined;
      if (this.#request.errored || this.#request.destroyed) throw new BodyBrokenOff();
      await this.#change();
    }
  }

  #count(chunk: Buffer): Buffer {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#limits.maxBytes) throw bodyTooLarge(this.#limits.maxBytes);
    return chunk;
  }

  async #change(): Promise<void> {
    const request = this.#request;
    const { timeoutMs, silenceMs = Number.POSITIVE_INFINITY, late } = this.#limits;
    const leftMs = timeoutMs + (this.#bytes / MIB) * MS_PER_MIB - this.#waitedMs;
    const start = performance.now();
    await new Promise<void>((resolve, reject) => {
      const finish = (error?: ServiceError): void => {
        clearTimeout(timer);
        clearImmediate(turn);
        for (const event of EVENTS) request.off(event, wake);
        if (error === undefined) resolve();
        else reject(error);
      };
      const wake = (): void => finish();
      let turn: NodeJS.Immediate | undefined;
      // In a process that was busy, the timer may fire before data that waits in the socket is read. So wait for one more read.
      const expire = (): void => {
        turn = setImmediate(() => finish(late()));
      };
      const timer = setTimeout(expire, Math.max(0, Math.min(leftMs, silenceMs)));
      for (const event of EVENTS) request.on(event, wake);
    });
    this.#waitedMs += performance.now() - start;
  }
}

export function bodyTooLarge(maxBytes: number): ServiceError {
  return new ServiceError("request_too_large", `The request body is larger than ${byteSize(maxBytes)}.`);
}
