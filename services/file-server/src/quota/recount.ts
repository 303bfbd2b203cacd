/**
 * Reconciles the quota ledger with the store. Records each object that is there, with its size from the record cache where possible, and releases
 * what was not found. So errors caused by a lost process, a lost Redis or an operator do not last. A count that fails or skips an object releases
 * nothing, and what was counted stays. Memory is bounded by a batch.
 */
import {
  accountOf,
  DELETED_RECORD,
  type ObjectRecord,
  objectRecordKey,
  objectRecordSchema,
  STORED_KINDS,
  storedKindOf,
} from "@svc/contracts";
import { type ObjectAddress, type ObjectStore, StoreError } from "@svc/object-store";
import { type Gauge, gauge, type Log, mapLimited, type Redis, type Registry } from "@svc/service-kit";
import { passedOver } from "../passed-over.ts";
import { type Quotas, sizedOf } from "./quotas.ts";

const BATCH = 500;
const PARALLEL_READS = 16;

type PassOver = ReturnType<typeof passedOver>;

export class Recount {
  readonly #log: Log;
  readonly #quotas: Quotas;
  readonly #store: ObjectStore;
  readonly #redis: Redis;
  readonly #bytes: Gauge<"kind">;
  readonly #objects: Gauge<"kind">;

  constructor(
    { log, registry }: { log: Log; registry: Registry },
    quotas: Quotas,
    store: ObjectStore,
    redis: Redis,
  ) {
    this.#log = log;
    this.#quotas = quotas;
    this.#store = store;
    this.#redis = redis;
    this.#bytes = gauge(registry, "svc_quota_stored_bytes");
    this.#objects = gauge(registry, "svc_quota_stored_objects");
    this.#show(totals());
  }

  async run(isStopping: () => boolean = () => false): Promise<void> {
    if (!this.#quotas.isOn) return;
    const begun = await this.#quotas.ledger.now();
    await this.#quotas.ledger.keep();
    const tell = passedOver(this.#log);
    let isWhole = true;
    const passOver: PassOver = (error) => {
      isWhole = false;
      return tell(error);
    };
    let batch: ObjectAddress[] = [];
    for await (const address of this.#store.addresses(passOver)) {
      if (isStopping()) return;
      batch.push(address);
      if (batch.length < BATCH) continue;
      await this.#note(batch, passOver);
      batch = [];
    }
    await this.#note(batch, passOver);
    const held = totals();
    for await (const account of this.#quotas.ledger.accounts()) {
      if (isStopping()) return;
      // A skipped object was not seen, but is stored all the same: then only expired reservations are released.
      const { bytes, objects } = await this.#quotas.ledger.prune(account, isWhole ? begun : 0);
      const total = held[storedKindOf(account)];
      total.bytes += bytes;
      total.objects += objects;
    }
    this.#show(held);
  }

  async #note(addresses: readonly ObjectAddress[], passOver: PassOver): Promise<void> {
    const records = await this.#records(addresses, passOver);
    const byAccount = Map.groupBy(
      records.filter((record) => record !== undefined),
      accountOf,
    );
    for (const [account, own] of byAccount) {
      if (this.#quotas.covers(account)) await this.#quotas.ledger.settle(account, own.map(sizedOf));
    }
  }

  async #records(
    addresses: readonly ObjectAddress[],
    passOver: PassOver,
  ): Promise<(ObjectRecord | undefined)[]> {
    if (addresses.length === 0) return [];
    const cached = await this.#redis.mget(
      addresses.map(({ session, file }) => objectRecordKey(session, file)),
    );
    return mapLimited(
      addresses.map((address, at) => ({ address, text: cached[at] ?? null })),
      PARALLEL_READS,
      async ({ address, text }) =>
        text === DELETED_RECORD ? undefined : (parsed(text) ?? (await this.#read(address).catch(passOver))),
    );
  }

  /** Undefined: there is no such object, or it is damaged. */
  async #read(address: ObjectAddress): Promise<ObjectRecord | undefined> {
    try {
      const object = await this.#store.open(address);
      await object.close();
      return object.record;
    } catch (error) {
      if (error instanceof StoreError && error.failure !== "unavailable") return undefined;
      throw error;
    }
  }

  #show(held: ReturnType<typeof totals>): void {
    for (const kind of STORED_KINDS) {
      this.#bytes.set({ kind }, held[kind].bytes);
      this.#objects.set({ kind }, held[kind].objects);
    }
  }
}

const totals = () => ({ files: { bytes: 0, objects: 0 }, session_states: { bytes: 0, objects: 0 } });

function parsed(text: string | null): ObjectRecord | undefined {
  try {
    return text === null ? undefined : objectRecordSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
