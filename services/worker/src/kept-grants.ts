/**
 * Grants of programs that paused, until they go on here or the grant lapses. A pause makes no grant better or longer: one
 * that would not last for the whole next round is given up. Pure but for its state.
 */
import type { RegisteredGrant } from "@svc/contracts";

const MAX_KEPT = 1024;

interface Kept {
  grant: RegisteredGrant;
  endsMs: number;
  /** Of the request that it was registered for. */
  requestId: string;
}

export class KeptGrants {
  readonly #kept = new Map<string, Kept>();
  readonly #giveUp: (kept: Kept) => void;

  constructor(giveUp: (kept: Kept) => void) {
    this.#giveUp = giveUp;
  }

  keep(executionId: string, kept: Kept, nowMs: number): void {
    this.drop(executionId);
    for (const [id, { endsMs }] of this.#kept) {
      if (endsMs > nowMs && this.#kept.size < MAX_KEPT) break;
      this.drop(id);
    }
    this.#kept.set(executionId, kept);
  }

  /** The grant of an execution, if it is good until then. */
  take(executionId: string, untilMs: number): Kept | undefined {
    const kept = this.#kept.get(executionId);
    if (kept === undefined || kept.endsMs < untilMs) {
      this.drop(executionId);
      return undefined;
    }
    this.#kept.delete(executionId);
    return kept;
  }

  drop(executionId: string): void {
    const kept = this.#kept.get(executionId);
    if (kept === undefined) return;
    this.#kept.delete(executionId);
    this.#giveUp(kept);
  }
}
