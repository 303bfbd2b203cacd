/**
 * Bounds how many waits for jobs a principal has open in this process, including event streams of jobs. Each wait polls Redis until its
 * job has ended.
 */
import type { Principal } from "@svc/contracts";
import { callerKey } from "./limiter.ts";
import { waitsAreOpen } from "./window.ts";

/** Open waits of one principal. */
export const MOST_WAITS = 32;

export class OpenWaits {
  readonly #open = new Map<string, number>();

  /** Throws `rate_limited` when the principal already has too many open waits. */
  async during<T>(principal: Principal, wait: () => Promise<T>): Promise<T> {
    const caller = callerKey(principal);
    const others = this.#count(caller);
    if (others >= MOST_WAITS) throw waitsAreOpen(MOST_WAITS);
    this.#open.set(caller, others + 1);
    try {
      return await wait();
    } finally {
      const left = this.#count(caller) - 1;
      if (left > 0) this.#open.set(caller, left);
      else this.#open.delete(caller);
    }
  }

  #count(caller: string): number {
    return this.#open.get(caller) ?? 0;
  }
}
