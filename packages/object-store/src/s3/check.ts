/** Checks that the bucket is usable: it is writable, and the server honours the condition `If-None-Match`. */
import { StoreError } from "../store.ts";
import { usableFor } from "../usable.ts";
import type { Bucket } from "./bucket.ts";
import { probeKey } from "./keys.ts";

const GOOD_FOR_MS = 3000;

export class Check {
  readonly #bucket: Bucket;
  #honoursConditions = false;

  /** Throws unless the bucket is usable. A success is cached for `GOOD_FOR_MS`. */
  readonly now = usableFor(GOOD_FOR_MS, () => this.#ask());

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  /** Throws unless the server is known to refuse to create a key that exists. Probes only until this is known. */
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
  }
}
