/** Caches the installed runtimes, which workers publish in Redis, for a few seconds. */
import { RUNTIMES_KEY, type RuntimeInfo } from "@svc/contracts";
import type { Redis } from "@svc/service-kit";

const REMEMBER_MS = 5000;

export class KnownRuntimes {
  readonly #redis: Redis;
  #value: readonly RuntimeInfo[] | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Undefined while no worker has published any. While Redis is unreachable it returns the last known value. */
  async get(): Promise<readonly RuntimeInfo[] | undefined> {
    if (performance.now() - this.#readAt < REMEMBER_MS) return this.#value;
    try {
      const text = await this.#redis.get(RUNTIMES_KEY);
      if (text !== null) this.#value = JSON.parse(text) as RuntimeInfo[];
      this.#readAt = text === null ? Number.NEGATIVE_INFINITY : performance.now();
    } catch {
      return this.#value;
    }
    return this.#value;
  }
}
