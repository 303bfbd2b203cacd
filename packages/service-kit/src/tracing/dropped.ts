/** Counts undelivered spans and logs them: at the first one, then at most once a minute, and when delivery works again. */
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

  /** `reason`: must contain nothing from the spans. */
  add(count: number, reason: string): void {
    if (count === 0) return;
    this.#total += count;
    this.#reason = reason;
    if (this.#nowMs() >= this.#nextMs) this.tell();
  }

  /** Called after each successful delivery. */
  delivered(): void {
    if (this.#nextMs === Number.NEGATIVE_INFINITY) return;
    this.tell();
    this.#nextMs = Number.NEGATIVE_INFINITY;
    this.#log.info({ dropped: this.#total }, "spans are exported again");
  }

  /** Logs the total if it has changed since the last line. */
  tell(): void {
    if (this.#total === this.#told) return;
    this.#told = this.#total;
    this.#nextMs = this.#nowMs() + AGAIN_MS;
    this.#log.warn({ dropped: this.#total, reason: this.#reason }, "spans were dropped");
  }
}
