/**
 * Bounds the memory of repeated resumes in this process. Each holds its results while it waits for the first one's answer, and takes no
 * seat. The bound applies to each caller, over all of its programs.
 */
import { ServiceError } from "@svc/contracts";

/** The cost of a waiting request without its results. */
const LEAST_BYTES = 65_536;
const RETRY_SECONDS = "5";
const CROWDED =
  "Too many requests wait for an answer with their results already; it is safe to repeat this one.";

export class WaitingResults {
  readonly #maxBytes: number;
  readonly #held = new Map<string, number>();

  /** `maxBytes`: limit for each caller. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The returned function releases the results. A caller that holds nothing yet is never refused, so that one request can always wait. */
  hold(caller: string, resultBytes: number): () => void {
    const bytes = LEAST_BYTES + resultBytes;
    const held = this.#held.get(caller) ?? 0;
    if (held > 0 && held + bytes > this.#maxBytes) {
      throw new ServiceError("queue_saturated", CROWDED, { headers: { "retry-after": RETRY_SECONDS } });
    }
    this.#held.set(caller, held + bytes);
    return () => {
      const left = (this.#held.get(caller) ?? 0) - bytes;
      if (left > 0) this.#held.set(caller, left);
      else this.#held.delete(caller);
    };
  }
}
