/**
 * Removes objects that nobody stored or used for the life of their kind (lives.ts), bytes and record together, and what broken-off
 * writes left behind; then counts what is left, for quotas. Runs at start and then again and again, one sweep at a time, so
 * what should have gone while no file server ran goes at the next start. Without Redis nothing is removed: the cache must not keep
 * records of objects that are gone.
 */
import { type ObjectAddress, type ObjectStore, StoreError } from "@svc/object-store";
import type { Config, Log } from "@svc/service-kit";
import { differentLives, lifeOf } from "./lives.ts";
import type { RecordCache } from "./record-cache.ts";
import { useGranularityMs } from "./storage.ts";

const SHORTEST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 3_600_000;
/** After one that failed. */
const RETRY_PAUSE_MS = 60_000;
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
  const [longest = 0, ...shorter] = differentLives(config);
  let removed = 0;
  const remove = async (address: ObjectAddress) => {
    await cache.forget(address);
    await store.delete(address).catch((error: unknown) => {
      if (!(error instanceof StoreError && error.failure === "not_found")) throw error;
    });
    removed++;
  };
  for await (const address of store.unusedSince(before(longest))) {
    if (isStopping()) break;
    await remove(address);
  }
  for (const life of shorter) {
    for await (const address of store.unusedSince(before(life))) {
      if (isStopping()) break;
      if ((await lifeIn(store, address, config)) <= life) await remove(address);
    }
  }
  if (leftovers + removed > 0) log.info({ leftovers, removed }, "swept object storage");
}

/** The kind of a damaged object is not known: it has the shortest life. */
async function lifeIn(store: ObjectStore, address: ObjectAddress, config: Config): Promise<number> {
  try {
    const object = await store.open(address);
    await object.close();
    return lifeOf(object.record, config);
  } catch (error) {
    if (error instanceof StoreError && error.failure !== "unavailable") return 0;
    throw error;
  }
}

/** `recount` runs after each sweep. */
export function startRetention(
  config: Config,
  log: Log,
  store: ObjectStore,
  cache: RecordCache,
  recount: (isStopping: () => boolean) => Promise<void>,
): Retention {
  const pause = Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, useGranularityMs(config)));
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let sweep: Promise<void> = Promise.resolve();
  const run = (): void => {
    const isStopping = () => stopping;
    sweep = sweepOnce(config, log, store, cache, isStopping)
      .then(() => recount(isStopping))
      .then(
        () => pause,
        (error: Error) => {
          log.warn({ err: error.message }, "sweeping object storage failed");
          return Math.min(pause, RETRY_PAUSE_MS);
        },
      )
      .then((next) => {
        if (!stopping) timer = setTimeout(run, next);
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
