/**
 * The time by Redis's clock, for producers and consumers on machines whose clocks differ. It asks Redis at each new connection and,
 * while it is used, once a minute, because Redis's clock may be set. In between it uses the monotonic clock of this process. It
 * keeps its offset when a reply fits it within the round trip, so processes on one machine agree to the microsecond.
 * Until the first reply it returns this machine's time.
 */
import type { Redis } from "@svc/service-kit";

const ASK_EVERY_MS = 60_000;

export class RedisClock {
  readonly #redis: Redis;
  /** How far Redis's clock is ahead of this machine's. */
  #aheadMs = 0;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(redis: Redis) {
    this.#redis = redis;
    redis.on("ready", () => this.#ask());
    if (redis.status === "ready") this.#ask();
  }

  /** Milliseconds since 1970, with fractions. */
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
