/** Whether the bucket can be used: it can be written, and it honours conditions. */
import { StoreError } from "../store.ts";
import { usableFor } from "../usable.ts";
import type { Bucket } from "./bucket.ts";
import { probeKey } from "./keys.ts";

const GOOD_FOR_MS = 3000;

export class Check {
  readonly #bucket: Bucket;
  #honoursConditions = false;

  /** Throws unless the bucket can be written right now. */
  readonly now = usableFor(GOOD_FOR_MS, () => this.#ask());

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
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
  }
}
