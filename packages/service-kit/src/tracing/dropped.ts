/** Counts spans that were not delivered, and tells of them: at the first, then once a minute at most, and when it is over. */
import type { Log } from "../log.ts";

const AGAIN_MS = 60_000;

export class DroppedSpans {
  readonly #log: Pick<Log, "warn" | "info">;
  readonly #nowMs: () => number;
  #total = 0;
  #told = 0;
  #nextMs = Number.NEGATIVE_INFINITY;
  #reason = "";

  constructor(log: Pick<Log, "warn" | "info">, nowMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** `reason`: says nothing of the spans. */
  add(count: number, reason: string): void {
    if (count === 0) return;
    this.#total += count;
    this.#reason = reason;
    if (this.#nowMs() >= this.#nextMs) this.tell();
  }

  /** Spans were delivered. */
  delivered(): void {
    if (this.#nextMs === Number.NEGATIVE_INFINITY) return;
    this.tell();
    this.#nextMs = Number.NEGATIVE_INFINITY;
    this.#log.info({ dropped: this.#total }, "spans are exported again");
  }

  /** Writes a line when there is something new. */
  tell(): void {
    if (this.#total === this.#told) return;
    this.#told = this.#total;
    this.#nextMs = this.#nowMs() + AGAIN_MS;
    this.#log.warn({ dropped: this.#total, reason: this.#reason }, "spans were dropped");
  }
}
