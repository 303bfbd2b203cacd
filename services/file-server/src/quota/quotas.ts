/**
 * Keeps principals within their quotas by reservations. A write reserves its size once that is known and before the object is visible. The
 * reservation is released when it is certain that nothing is stored. In doubt, or when a process dies, it expires or the next sweep counts the
 * object (recount.ts). Where an account has no quota, Redis is not asked. Where there is one, nothing is stored while Redis is away.
 */
import {
  type ObjectRecord,
  quotaExceeded,
  ServiceError,
  STORED_KINDS,
  storedKindOf,
  type Usage,
} from "@svc/contracts";
import type { ObjectAddress } from "@svc/object-store";
import {
  type Config,
  type Counter,
  counter,
  errorText,
  type Log,
  type Redis,
  type Registry,
  storeCall,
} from "@svc/service-kit";
import { type Allowance, Ledger, type Sized } from "./ledger.ts";

/** Called with the size of a write. Throws `quota_exceeded` when the quota does not allow it. */
type Admit = (bytes: number) => Promise<void>;

export const sizedOf = ({ storage_session_id, id, size }: ObjectRecord): Sized => ({
  address: { session: storage_session_id, file: id },
  size,
});

export class Quotas {
  readonly ledger: Ledger;
  readonly #config: Config;
  readonly #log: Log;
  readonly #refusals: Counter<"kind" | "resource">;

  constructor({ config, log, registry }: { config: Config; log: Log; registry: Registry }, redis: Redis) {
    this.ledger = new Ledger(redis);
    this.#config = config;
    this.#log = log;
    this.#refusals = counter(registry, "svc_quota_refusals_total");
  }

  get isOn(): boolean {
    return STORED_KINDS.some((kind) => isLimited(allowanceOf(this.#config, kind)));
  }

  covers(account: string): boolean {
    return isLimited(allowanceOf(this.#config, storedKindOf(account)));
  }

  /** What the account uses of each of its quotas. */
  async usage(account: string): Promise<Usage["quotas"]> {
    if (!this.covers(account)) return [];
    const kind = storedKindOf(account);
    const most = allowanceOf(this.#config, kind);
    const held = await storeCall(() => this.ledger.held(account));
    return (["bytes", "objects"] as const)
      .filter((resource) => most[resource] > 0)
      .map((resource) => ({ kind, resource, used: held[resource], limit: most[resource] }));
  }

  /** Runs a write, which calls `admit`. The reservation of a write that certainly failed is released; that of a successful one stays. */
  async writing<T>(
    account: string,
    address: ObjectAddress,
    write: (admit: Admit) => Promise<T>,
    forMs?: number,
  ): Promise<T> {
    let isReserved = false;
    try {
      return await write(async (size) => {
        isReserved = await this.reserve(account, [{ address, size }], forMs);
      });
    } catch (error) {
      const mayBeStored = error instanceof ServiceError && error.code === "storage_unavailable";
      if (isReserved && !mayBeStored) await this.#lightly(() => this.ledger.release(account, [address]));
      throw error;
    }
  }

  /** Reserves quota for all of the objects or none, by default for as long as a write takes. Returns whether any reservation is new. */
  async reserve(account: string, objects: readonly Sized[], forMs?: number): Promise<boolean> {
    if (!this.covers(account)) return false;
    const kind = storedKindOf(account);
    const most = allowanceOf(this.#config, kind);
    const { refused, used, asked } = await storeCall(() =>
      this.ledger.reserve(account, objects, most, forMs),
    );
    if (refused === undefined) return asked.objects > 0;
    this.#refusals.inc({ kind, resource: refused });
    throw quotaExceeded({
      kind,
      resource: refused,
      used: used[refused],
      limit: most[refused],
      asked: asked[refused],
    });
  }

  /** Records that the objects are stored. */
  async settle(account: string, records: readonly ObjectRecord[]): Promise<void> {
    if (this.covers(account)) await this.#lightly(() => this.ledger.settle(account, records.map(sizedOf)));
  }

  /** Records that the objects are gone. */
  async release(account: string, addresses: readonly ObjectAddress[]): Promise<void> {
    if (this.covers(account)) await this.#lightly(() => this.ledger.release(account, addresses));
  }

  /** Records that the pending objects of the session are gone. */
  async releaseSession(account: string, session: string): Promise<void> {
    if (this.covers(account)) await this.#lightly(() => this.ledger.releaseSession(account, session));
  }

  /** Only logs a failure: the next sweep corrects the ledger. */
  async #lightly(operation: () => Promise<void>): Promise<void> {
    await operation().catch((error: Error) =>
      this.#log.warn({ err: errorText(error) }, "counting stored objects failed; the next sweep counts them"),
    );
  }
}

function allowanceOf(config: Config, kind: (typeof STORED_KINDS)[number]): Allowance {
  return kind === "files"
    ? { bytes: config.SVC_QUOTA_MAX_BYTES, objects: config.SVC_QUOTA_MAX_OBJECTS }
    : { bytes: config.SVC_QUOTA_SESSION_STATE_MAX_BYTES, objects: 0 };
}

const isLimited = ({ bytes, objects }: Allowance) => bytes > 0 || objects > 0;
