/**
 * Collects the grants to revoke. They travel with the next registration; when none follows within WAIT_MS they are sent
 * together.
 */
import { type EndedGrant, MAX_ENDED_GRANTS } from "@svc/contracts";

const WAIT_MS = 50;

export interface Ended extends EndedGrant {
  /** Request id of the round. */
  requestId: string;
}

export class RevocationBatch {
  readonly #send: (ended: readonly Ended[]) => Promise<void>;
  readonly #waitMs: number;
  #pending: Ended[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** `send` never rejects. */
  constructor(send: (ended: readonly Ended[]) => Promise<void>, waitMs = WAIT_MS) {
    this.#send = send;
    this.#waitMs = waitMs;
  }

  add(ended: Ended): void {
    this.#pending.push(ended);
    if (this.#pending.length >= MAX_ENDED_GRANTS) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), this.#waitMs);
  }

  /** Removes and returns the collected revocations, for a request that is sent now. */
  take(): Ended[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const collected = this.#pending;
    this.#pending = [];
    return collected;
  }

  /** Sends the collected revocations. */
  async flush(): Promise<void> {
    const collected = this.take();
    if (collected.length > 0) await this.#send(collected);
  }
}
