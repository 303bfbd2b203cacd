/**
 * An answer as server-sent events (WHATWG HTML, section 9.2): nothing is sent before the first event, a comment while nothing comes, and
 * no more is held than the connection takes. A reader that takes nothing for long is given up: its connection is closed.
 */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { type FastifyReply, whenClosed } from "@svc/service-kit";
import { EVENT_STREAM } from "../accept.ts";

const COMMENT = ":\n\n";
/** Written at once. A reader that takes one of them goes on reading. */
const PIECE_BYTES = 16_384;

/** `quietMs`: after so long without an event comes a comment. `stalledMs`: a reader that takes nothing for so long is given up. */
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
    // A connection that broke is told by its close.
    this.#body.on("error", () => undefined);
    whenClosed(reply, () => {
      clearTimeout(this.#comment);
      this.#closed.abort();
    });
  }

  /** Once it is, errors are events. */
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

  /** Settles when the connection takes more, or has closed. One at a time. */
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
