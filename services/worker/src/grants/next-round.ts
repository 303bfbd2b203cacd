/**
 * Grants for the next rounds of paused programs, one each, requested while the caller computes results. A grant that would
 * expire within the round is released. Holds state and does no I/O.
 */
import type { RegisteredGrant } from "@svc/contracts";

const MAX_READY = 1024;

export interface NextRoundGrant {
  /** Undefined: the request failed. */
  grant: Promise<RegisteredGrant | undefined>;
  endsMs: number;
  /** Request id of the round that ended with the pause. */
  requestId: string;
}

export class NextRoundGrants {
  readonly #ready = new Map<string, NextRoundGrant>();
  readonly #release: (ready: NextRoundGrant) => void;

  constructor(release: (ready: NextRoundGrant) => void) {
    this.#release = release;
  }

  put(executionId: string, ready: NextRoundGrant, nowMs: number): void {
    this.drop(executionId);
    for (const [id, { endsMs }] of this.#ready) {
      if (endsMs > nowMs && this.#ready.size < MAX_READY) break;
      this.drop(id);
    }
    this.#ready.set(executionId, ready);
  }

  /** The grant for the next round of an execution, if it is valid until `untilMs`. */
  take(executionId: string, untilMs: number): NextRoundGrant | undefined {
    const ready = this.#ready.get(executionId);
    if (ready === undefined || ready.endsMs < untilMs) {
      this.drop(executionId);
      return undefined;
    }
    this.#ready.delete(executionId);
    return ready;
  }

  drop(executionId: string): void {
    const ready = this.#ready.get(executionId);
    if (ready === undefined) return;
    this.#ready.delete(executionId);
    this.#release(ready);
  }
}
