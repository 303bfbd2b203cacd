/**
 * The time by Redis's clock, for producers and consumers on machines whose clocks differ. Redis is asked at each new connection and, while
 * the time is wanted, once a minute: its clock may be set. In between, time passes by a clock of this process that nobody sets. Until the
 * first answer it is this machine's time.
 */
import type { Redis } from "@svc/service-kit";

const ASK_EVERY_MS = 60_000;

export class RedisClock {
  readonly #redis: Redis;
  /** When `performance.now()` was 0. */
  #originMs = performance.timeOrigin;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(redis: Redis) {
    this.#redis = redis;
    redis.on("ready", () => this.#ask());
    if (redis.status === "ready") this.#ask();
  }

  /** In ms since 1970. */
  now(): number {
    const sinceMs = performance.now() - this.#askedMs;
    if (sinceMs > ASK_EVERY_MS && this.#redis.status === "ready") this.#ask();
    return Math.round(this.#originMs + performance.now());
  }

  #ask(): void {
    this.#askedMs = performance.now();
    this.#redis.time().then(
      ([seconds, micros]) => {
        this.#originMs = Number(seconds) * 1000 + Number(micros) / 1000 - performance.now();
      },
      () => undefined,
    );
  }
}
