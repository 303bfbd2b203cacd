/**
 * Whether the bucket can be used: it can be written, and it honours conditions. A good answer holds for a few seconds, so that
 * frequent questions do not cost a write each; several questions at once share one.
 */
import { StoreError } from "../store.ts";
import type { Bucket } from "./bucket.ts";
import { probeKey } from "./keys.ts";

const GOOD_FOR_MS = 3000;

export class Check {
  readonly #bucket: Bucket;
  #asking: Promise<void> | undefined;
  #goodUntil = 0;
  #honoursConditions = false;

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  /** Throws unless the bucket can be written right now. */
  async now(): Promise<void> {
    if (performance.now() < this.#goodUntil) return;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    await this.#asking;
  }

  /** Throws unless the server is known to refuse the creation of what exists. Asks only until it is known. */
  async conditions(): Promise<void> {
    if (!this.#honoursConditions) await this.now();
  }

  async #ask(): Promise<void> {
    const key = probeKey();
    try {
      await this.#bucket.create(key, "probe");
      if (!this.#honoursConditions) {
        this.#honoursConditions = (await this.#bucket.create(key, "probe")) === "taken";
      }
    } finally {
      await this.#bucket.delete(key);
    }
    if (!this.#honoursConditions) {
      throw new StoreError("unavailable", "the S3 server ignores If-None-Match and would replace objects");
    }
    this.#goodUntil = performance.now() + GOOD_FOR_MS;
  }
}
