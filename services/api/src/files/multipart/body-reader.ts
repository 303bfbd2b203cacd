/**
 * Pulls a request body chunk by chunk, so that nothing is read before it is wanted. A client that is silent for too long
 * while more is wanted ends the request with `upload_timeout`; time that we need ourselves does not count.
 */
import type { IncomingMessage } from "node:http";
import { ServiceError } from "@svc/contracts";
import { noteMovedBytes } from "@svc/service-kit";

export interface BodyReaderLimits {
  silenceMs: number;
  maxBytes: number;
}

const EVENTS = ["readable", "end", "error", "close"] as const;

export class BodyReader {
  readonly #request: IncomingMessage;
  readonly #limits: BodyReaderLimits;
  #bytes = 0;

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
      if (this.#request.errored || this.#request.destroyed) throw brokenOff();
      await this.#news();
    }
  }

  #count(chunk: Buffer): Buffer {
    this.#bytes += chunk.length;
    noteMovedBytes(chunk.length);
    if (this.#bytes > this.#limits.maxBytes) throw new ServiceError("request_too_large");
    return chunk;
  }

  async #news(): Promise<void> {
    const request = this.#request;
    await new Promise<void>((resolve, reject) => {
      const finish = (error?: ServiceError): void => {
        clearTimeout(timer);
        for (const event of EVENTS) request.off(event, wake);
        if (error === undefined) resolve();
        else reject(error);
      };
      const wake = (): void => finish();
      const timer = setTimeout(() => finish(new ServiceError("upload_timeout")), this.#limits.silenceMs);
      for (const event of EVENTS) request.on(event, wake);
    });
  }
}

function brokenOff(): ServiceError {
  return new ServiceError("invalid_request", "The request body broke off.");
}
