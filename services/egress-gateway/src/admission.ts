/**
 * Admits or refuses a call of the sandbox, and charges it. Order of checks: token, ledger record, ids, status, expiry, scope, budget; then the
 * counters, in the same step as the checks. Fails closed: without Redis no call is admitted.
 */
import {
  type Charge,
  charge,
  type Grant,
  type Ledger,
  type LedgerRecord,
  ledgerVerdict,
  openGrant,
  refund,
  type SealKeys,
  settle,
  type Upload,
  unread,
} from "@svc/capabilities";
import { GRANT_HEADER } from "@svc/contracts";
import { storeCall } from "@svc/service-kit";
import { nowSeconds } from "./authority.ts";
import { ledgerRefused, refusals } from "./refusals.ts";

type GrantIds = Pick<Grant, "grant_id" | "exec_id">;

export class Admission {
  readonly #keys: SealKeys;
  readonly #ledger: Ledger;
  readonly #required: boolean;

  constructor(keys: SealKeys, ledger: Ledger, required: boolean) {
    this.#keys = keys;
    this.#ledger = ledger;
    this.#required = required;
  }

  /**
   * Admits a call. `scope` returns what the call is about, or throws when the grant or the call does not allow it. `cost` returns what to charge.
   */
  async admit<T>(
    headers: Record<string, unknown>,
    scope: (grant: Grant) => T,
    cost: (subject: T) => Charge,
  ): Promise<{ grant: Grant; subject: T }> {
    const grant = refusals(() => openGrant(this.#keys, headers[GRANT_HEADER], nowSeconds()));
    let found: { subject: T } | undefined;
    const subject = (): T => {
      found ??= { subject: scope(grant) };
      return found.subject;
    };
    await this.charge(grant, () => cost(subject()));
    return { grant, subject: subject() };
  }

  /** Charges a grant whose token was opened. `cost` returns what to charge, and may throw when the call is out of scope. */
  async charge(grant: GrantIds, cost: () => Charge): Promise<void> {
    await storeCall(() =>
      this.#ledger.change(grant.grant_id, (record) => {
        this.#demand(record, grant);
        const use = cost();
        if (record === undefined) return undefined;
        const charged = charge(record, use);
        if (typeof charged === "string") throw ledgerRefused(charged);
        return charged;
      }),
    );
  }

  /** Throws unless the ledger accepts the grant; charges nothing. */
  async check(grant: GrantIds): Promise<void> {
    this.#demand(await storeCall(() => this.#ledger.find(grant.grant_id)), grant);
  }

  #demand(record: LedgerRecord | undefined, grant: GrantIds): void {
    const refusal = ledgerVerdict(record, grant, this.#required, nowSeconds());
    if (refusal !== undefined) throw ledgerRefused(refusal);
  }

  /** Replaces the reservation of an upload by its real size. If that is the announced size, Redis is not asked. */
  async settle(grant: Grant, upload: Upload, real: number): Promise<void> {
    if (real === upload.bytes) return;
    await storeCall(() =>
      this.#ledger.change(grant.grant_id, (record) => record && settle(record, upload, real)),
    );
  }

  /** Refunds reads that were charged but not made. */
  async unread(grant: GrantIds, reads: number): Promise<void> {
    if (reads === 0) return;
    await storeCall(() => this.#ledger.change(grant.grant_id, (record) => record && unread(record, reads)));
  }

  /** Releases the reservation of a failed upload. */
  async refund(grant: Grant, upload: Upload): Promise<void> {
    await storeCall(() => this.#ledger.change(grant.grant_id, (record) => record && refund(record, upload)));
  }
}
