/**
 * Grants whose rounds are over. Their ends ride with the next registration; when none comes soon they are sent together.
 */
import { type EndedGrant, MAX_ENDED_GRANTS } from "@svc/contracts";

const WAIT_MS = 50;

export interface Ended extends EndedGrant {
  /** Of the round. */
  requestId: string;
}

export class EndedGrants {
  readonly #send: (ended: readonly Ended[]) => Promise<void>;
  readonly #waitMs: number;
  #waiting: Ended[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** `send` never rejects. */
  constructor(send: (ended: readonly Ended[]) => Promise<void>, waitMs = WAIT_MS) {
    this.#send = send;
    this.#waitMs = waitMs;
  }

  add(ended: Ended): void {
    this.#waiting.push(ended);
    if (this.#waiting.length >= MAX_ENDED_GRANTS) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), this.#waitMs);
  }

  /** Those that wait, for a request that is sent now. */
  take(): Ended[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  /** Sends those that wait. */
  async flush(): Promise<void> {
    const taken = this.take();
    if (taken.length > 0) await this.#send(taken);
  }
}
