/**
 * A cache of records as this process last saw them. A change that is based on a cached record takes one round trip: Redis
 * refuses it when the record has changed. The cache decides only one thing: when Redis holds an earlier revision than the
 * cache, Redis has lost changes. Bounded; evicts the record that was remembered longest ago.
 */
import type { LedgerRecord } from "./rules.ts";

const MAX_RECORDS = 1024;
/** Longer records are not cached. */
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
