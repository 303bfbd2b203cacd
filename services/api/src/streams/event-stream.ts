/**
 * An answer as server-sent events (WHATWG HTML, section 9.2): nothing is sent before the first event, a comment while nothing comes, and
 * no more is held than the connection takes. A reader that takes nothing for long is given up: its connection is closed.
 */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { FastifyReply } from "@svc/service-kit";
import { EVENT_STREAM } from "./wanted.ts";

const QUIET_MS = 10_000;
const COMMENT = ":\n\n";
const STALLED_MS = 60_000;

export class EventStream {
  readonly #reply: FastifyReply;
  readonly #body = new PassThrough();
  /** Aborted when the connection has closed. */
  readonly #closed = new AbortController();
  #isOpen = false;
  #comment: NodeJS.Timeout | undefined;

  constructor(reply: FastifyReply) {
    this.#reply = reply;
    // A connection that broke is told by its close.
    this.#body.on("error", () => undefined);
    reply.raw.once("close", () => {
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
    this.#write(COMMENT);
  }

  #begin(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    void this.#reply
      .headers({ "content-type": EVENT_STREAM, "cache-control": "no-store", "x-accel-buffering": "no" })
      .send(this.#body);
  }

  /** Settles when the connection takes more, or has closed. */
  async send(event: string, data: unknown): Promise<void> {
    this.#begin();
    if (!this.#write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)) await this.#drained();
  }

  end(): void {
    clearTimeout(this.#comment);
    this.#body.end();
  }

  #write(text: string): boolean {
    if (this.isClosed) return true;
    clearTimeout(this.#comment);
    this.#comment = setTimeout(() => this.#write(COMMENT), QUIET_MS);
    return this.#body.write(text);
  }

  async #drained(): Promise<void> {
    const stalled = setTimeout(() => this.#reply.raw.destroy(), STALLED_MS);
    try {
      await once(this.#body, "drain", { signal: this.#closed.signal });
    } catch (error) {
      if (!this.isClosed) throw error;
    } finally {
      clearTimeout(stalled);
    }
  }
}
