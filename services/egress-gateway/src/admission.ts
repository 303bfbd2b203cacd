/**
 * Lets a call of the sandbox through or not, and charges it. Order of checks: token, ledger record, ids, status, expiry,
 * scope, budget; then the counters, in the same step as the checks. Fails closed: without Redis nothing is let through.
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

  /** `scope` says what the call is about, or throws when the grant or the call does not allow it; `cost` what it uses. */
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

  /** Charges what `cost` says, which may throw when the call is out of scope, to a grant whose token was opened. */
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

  /** Demands that the ledger has nothing against a grant; costs nothing. */
  async check(grant: GrantIds): Promise<void> {
    this.#demand(await storeCall(() => this.#ledger.find(grant.grant_id)), grant);
  }

  #demand(record: LedgerRecord | undefined, grant: GrantIds): void {
    const refusal = ledgerVerdict(record, grant, this.#required, nowSeconds());
    if (refusal !== undefined) throw ledgerRefused(refusal);
  }

  /** Replaces what was set aside for an upload by its real size. One that had the announced size costs no call. */
  async settle(grant: Grant, upload: Upload, real: number): Promise<void> {
    if (real === upload.bytes) return;
    await storeCall(() =>
      this.#ledger.change(grant.grant_id, (record) => record && settle(record, upload, real)),
    );
  }

  /** Gives back what was charged for reads that were not made. */
  async unread(grant: GrantIds, reads: number): Promise<void> {
    if (reads === 0) return;
    await storeCall(() => this.#ledger.change(grant.grant_id, (record) => record && unread(record, reads)));
  }

  /** Gives back what was set aside for an upload that failed. */
  async refund(grant: Grant, upload: Upload): Promise<void> {
    await storeCall(() => this.#ledger.change(grant.grant_id, (record) => record && refund(record, upload)));
  }
}
