/**
 * Removes objects that nobody stored or used for SESSION_CACHE_TTL, snapshots of sessions after SVC_SESSION_STATE_TTL_SECONDS if
 * that is longer, bytes and record together, and what broken-off writes left behind. Runs at start and then again and again, one sweep at a time. Without Redis nothing is removed: the cache must
 * not keep records of objects that are gone.
 */
import { isSnapshotNamespace } from "@svc/contracts";
import { type ObjectAddress, type ObjectStore, StoreError } from "@svc/object-store";
import type { Config, Log } from "@svc/service-kit";
import type { RecordCache } from "./record-cache.ts";
import { useGranularityMs } from "./storage.ts";

const SHORTEST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 3_600_000;
/** Uploads that take longer than this are given up. */
const LEFTOVER_AGE_MS = 6 * 3_600_000;

export interface Retention {
  stop: () => Promise<void>;
}

export async function sweepOnce(
  config: Config,
  log: Log,
  store: ObjectStore,
  cache: RecordCache,
  isStopping: () => boolean = () => false,
): Promise<void> {
  const leftovers = await store.removeLeftovers(new Date(Date.now() - LEFTOVER_AGE_MS));
  const granularity = useGranularityMs(config);
  const before = (seconds: number) => new Date(Date.now() - seconds * 1000 - granularity);
  const { SESSION_CACHE_TTL: life, SVC_SESSION_STATE_TTL_SECONDS: snapshotLife } = config;
  const isTooYoung = (address: ObjectAddress) => snapshotLife > life && isSnapshot(store, address);
  let removed = 0;
  const remove = async (address: ObjectAddress) => {
    await cache.forget(address);
    await store.delete(address).catch((error: unknown) => {
      if (!(error instanceof StoreError && error.failure === "not_found")) throw error;
    });
    removed++;
  };
  for await (const address of store.unusedSince(before(Math.max(life, snapshotLife)))) {
    if (isStopping()) break;
    await remove(address);
  }
  for await (const address of store.unusedSince(before(life))) {
    if (isStopping()) break;
    if (!(await isTooYoung(address))) await remove(address);
  }
  if (leftovers + removed > 0) log.info({ leftovers, removed }, "swept object storage");
}

/** One that is damaged is none. */
async function isSnapshot(store: ObjectStore, address: ObjectAddress): Promise<boolean> {
  try {
    const object = await store.open(address);
    await object.close();
    return isSnapshotNamespace(object.record.namespace);
  } catch (error) {
    if (error instanceof StoreError && error.failure !== "unavailable") return false;
    throw error;
  }
}

export function startRetention(config: Config, log: Log, store: ObjectStore, cache: RecordCache): Retention {
  const pause = Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, useGranularityMs(config)));
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let sweep: Promise<void> = Promise.resolve();
  const run = (): void => {
    sweep = sweepOnce(config, log, store, cache, () => stopping)
      .catch((error: Error) => log.warn({ err: error.message }, "sweeping object storage failed"))
      .finally(() => {
        if (!stopping) timer = setTimeout(run, pause);
      });
  };
  run();
  return {
    stop: async () => {
      stopping = true;
      clearTimeout(timer);
      await sweep;
    },
  };
}
