/**
 * Records as this process last saw them. A change built on such a copy takes one round trip: the store refuses it when the
 * copy is no longer the record. A copy decides nothing, but that a record which the store holds in an earlier revision has
 * been lost there. Bounded; the oldest goes first.
 */
import type { LedgerRecord } from "./rules.ts";

const MAX_RECORDS = 1024;
/** Records with longer texts are read anew each time. */
const MAX_CHARS = 64 * 1024;

export class KnownRecords {
  readonly #records = new Map<string, LedgerRecord>();

  get(grantId: string): LedgerRecord | undefined {
    return this.#records.get(grantId);
  }

  remember(grantId: string, record: LedgerRecord, chars: number): void {
    this.#records.delete(grantId);
    if (chars > MAX_CHARS) return;
    const [oldest] = this.#records.keys();
    if (this.#records.size >= MAX_RECORDS && oldest !== undefined) this.#records.delete(oldest);
    this.#records.set(grantId, record);
  }

  forget(grantId: string): void {
    this.#records.delete(grantId);
  }
}
