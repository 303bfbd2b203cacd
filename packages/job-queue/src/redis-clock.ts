/**
 * The time by Redis's clock, for producers and consumers on machines whose clocks differ. Redis is asked at each new connection and, while
 * the time is wanted, once a minute: its clock may be set. In between, time passes by a clock of this process that nobody sets. An answer
 * that this time explains, between its question and its arrival, changes nothing: processes of one machine have one clock, to the
 * microsecond. Until the first answer it is this machine's time.
 */
import type { Redis } from "@svc/service-kit";

const ASK_EVERY_MS = 60_000;

export class RedisClock {
  readonly #redis: Redis;
  /** What Redis's clock is ahead of this machine's. */
  #aheadMs = 0;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(redis: Redis) {
    this.#redis = redis;
    redis.on("ready", () => this.#ask());
    if (redis.status === "ready") this.#ask();
  }

  /** In ms since 1970, with a fraction. */
  now(): number {
    const sinceMs = performance.now() - this.#askedMs;
    if (sinceMs > ASK_EVERY_MS && this.#redis.status === "ready") this.#ask();
    return this.#own() + this.#aheadMs;
  }

  #own(): number {
    return performance.timeOrigin + performance.now();
  }

  #ask(): void {
    this.#askedMs = performance.now();
    const sentMs = this.#own();
    this.#redis.time().then(
      ([seconds, micros]) => {
        const ms = Number(seconds) * 1000 + Number(micros) / 1000;
        this.#aheadMs = Math.min(Math.max(this.#aheadMs, ms - this.#own()), ms - sentMs);
      },
      () => undefined,
    );
  }
}
