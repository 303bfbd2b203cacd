/**
 * The cache of object records in Redis, which the API reads. The store is authoritative: an empty or absent Redis loses nothing, and the API asks
 * for a record that is not cached. Therefore caching waits only briefly and never fails. Records never change and ids are never reused. So
 * records are only added, and a deletion leaves a mark that no late reader can overwrite. `forget` must succeed before the object is removed:
 * otherwise a lost Redis could leave a record that opens the way to a deleted file.
 */
import { DELETED_RECORD, type ObjectRecord, objectRecordKey } from "@svc/contracts";
import type { ObjectAddress } from "@svc/object-store";
import { errorText, type Log, type Redis, storeCall } from "@svc/service-kit";

const LONGEST_WAIT_MS = 250;

export class RecordCache {
  readonly #redis: Redis;
  readonly #ttlSeconds: number;
  readonly #log: Log;

  constructor(redis: Redis, ttlSeconds: number, log: Log) {
    this.#redis = redis;
    this.#ttlSeconds = ttlSeconds;
    this.#log = log;
  }

  /** Adds records, or renews their life. */
  async remember(records: readonly ObjectRecord[]): Promise<void> {
    if (this.#redis.status !== "ready") return;
    const pipeline = this.#redis.pipeline();
    for (const record of records) {
      const key = objectRecordKey(record.storage_session_id, record.id);
      pipeline.set(key, JSON.stringify(record), "EX", this.#ttlSeconds, "NX");
      pipeline.expire(key, this.#ttlSeconds);
    }
    const written = pipeline.exec().catch((error: Error) => {
      this.#log.warn({ err: errorText(error) }, "caching an object record failed");
    });
    await shortly(written);
  }

  /** Marks an object as deleted; throws `store_unavailable` when Redis does not confirm it. */
  async forget({ session, file }: ObjectAddress): Promise<void> {
    await storeCall(() =>
      this.#redis.set(objectRecordKey(session, file), DELETED_RECORD, "EX", this.#ttlSeconds),
    );
  }
}

async function shortly(operation: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LONGEST_WAIT_MS);
  });
  await Promise.race([operation, enough]).finally(() => clearTimeout(timer));
}
