/**
 * Grants for the next rounds of programs that paused, one for each, made while the caller looks for his answers. One that
 * would not last for the whole round is given up. Pure but for its state.
 */
import type { RegisteredGrant } from "@svc/contracts";

const MAX_READY = 1024;

export interface ReadyGrant {
  /** Undefined: it could not be made. */
  grant: Promise<RegisteredGrant | undefined>;
  endsMs: number;
  /** Of the round that ended with the pause. */
  requestId: string;
}

export class ReadyGrants {
  readonly #ready = new Map<string, ReadyGrant>();
  readonly #giveUp: (ready: ReadyGrant) => void;

  constructor(giveUp: (ready: ReadyGrant) => void) {
    this.#giveUp = giveUp;
  }

  put(executionId: string, ready: ReadyGrant, nowMs: number): void {
    this.drop(executionId);
    for (const [id, { endsMs }] of this.#ready) {
      if (endsMs > nowMs && this.#ready.size < MAX_READY) break;
      this.drop(id);
    }
    this.#ready.set(executionId, ready);
  }

  /** The grant for the next round of an execution, if it is good until then. */
  take(executionId: string, untilMs: number): ReadyGrant | undefined {
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
    this.#giveUp(ready);
  }
}
