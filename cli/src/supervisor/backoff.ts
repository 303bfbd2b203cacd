/** The backoff before a component is restarted: it doubles each time, and starts again at the first delay after a healthy life. Pure. */
const FIRST_MS = 200;
const LONGEST_MS = 5000;
const HEALTHY_AFTER_MS = 30_000;

export class Backoff {
  #next = FIRST_MS;

  /** The delay after a life of `livedMs`. */
  delay(livedMs: number): number {
    if (livedMs >= HEALTHY_AFTER_MS) this.#next = FIRST_MS;
    const delay = this.#next;
    this.#next = Math.min(this.#next * 2, LONGEST_MS);
    return delay;
  }
}
