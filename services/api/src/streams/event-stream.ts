/**
 * An answer as server-sent events (WHATWG HTML, section 9.2). Nothing is sent before the first event, unless `open` is called. A
 * keep-alive comment is sent while there is no event. Back-pressure bounds the buffer. A reader that reads nothing for too long is
 * disconnected.
 */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { type FastifyReply, whenClosed } from "@svc/service-kit";
import { EVENT_STREAM } from "../accept.ts";

const COMMENT = ":\n\n";
/** The size of one write. A reader that consumes one write in time counts as reading. */
const PIECE_BYTES = 16_384;

/** `quietMs`: time without an event after which a comment is sent. `stalledMs`: time without reading after which a reader is cut off. */
const TIMES = { quietMs: 10_000, stalledMs: 60_000 };

export class EventStream {
  readonly #reply: FastifyReply;
  readonly #times: typeof TIMES;
  readonly #body = new PassThrough();
  /** Aborted when the connection has closed. */
  readonly #closed = new AbortController();
  #isOpen = false;
  #comment: NodeJS.Timeout | undefined;

  constructor(reply: FastifyReply, times = TIMES) {
    this.#reply = reply;
    this.#times = times;
    // A broken connection is reported by its close.
    this.#body.on("error", () => undefined);
    whenClosed(reply, () => {
      clearTimeout(this.#comment);
      this.#closed.abort();
    });
  }

  /** Whether the answer has begun; then errors are sent as events. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** Begins the answer before its first event. */
  open(): void {
    this.#begin();
    this.#body.write(COMMENT);
    this.#commentLater();
  }

  #begin(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    void this.#reply
      .headers({ "content-type": EVENT_STREAM, "cache-control": "no-store", "x-accel-buffering": "no" })
      .send(this.#body);
  }

  /** Settles when the connection can take more, or has closed. Callers must not send concurrently. */
  async send(event: string, data: unknown): Promise<void> {
    this.#begin();
    clearTimeout(this.#comment);
    const bytes = Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    for (let from = 0; from < bytes.length && !this.isClosed; from += PIECE_BYTES)
      if (!this.#body.write(bytes.subarray(from, from + PIECE_BYTES))) await this.#drained();
    this.#commentLater();
  }

  end(): void {
    clearTimeout(this.#comment);
    this.#body.end();
  }

  #commentLater(): void {
    clearTimeout(this.#comment);
    if (this.isClosed) return;
    this.#comment = setTimeout(() => {
      this.#body.write(COMMENT);
      this.#commentLater();
    }, this.#times.quietMs);
  }

  async #drained(): Promise<void> {
    const stalled = setTimeout(() => this.#reply.raw.destroy(), this.#times.stalledMs);
    try {
      await once(this.#body, "drain", { signal: this.#closed.signal });
    } catch (error) {
      if (!this.isClosed) throw error;
    } finally {
      clearTimeout(stalled);
    }
  }
}
