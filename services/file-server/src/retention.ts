/**
 * Sweeps object storage. Removes objects that nobody stored or used for the life of their kind (lives.ts), bytes and record together, and
 * leftovers of broken-off writes. Then counts what is left, for quotas. Sweeps run at start and periodically, one at a time, so the first one
 * removes what expired while no file server ran. Without Redis nothing is removed, because the cache must not keep records of objects that are
 * gone. Nothing is removed either unless the clocks of this machine and of Redis agree.
 */
import { type ObjectAddress, type ObjectStore, StoreError } from "@svc/object-store";
import { type Config, clockReason, errorText, type Log } from "@svc/service-kit";
import { differentLives, lifeOf, PENDING_LIFE_MS } from "./lives.ts";
import { passedOver } from "./passed-over.ts";
import type { RecordCache } from "./record-cache.ts";
import { useGranularityMs } from "./storage.ts";

const SHORTEST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 3_600_000;
/** Pause after a failed sweep. */
const RETRY_PAUSE_MS = 60_000;

export interface Retention {
  stop: () => Promise<void>;
}

export interface SweepDeps {
  config: Config;
  log: Log;
  store: ObjectStore;
  cache: RecordCache;
  /** In ms. */
  redisTime: () => Promise<number>;
}

export async function sweepOnce(deps: SweepDeps, isStopping: () => boolean = () => false): Promise<void> {
  const { config, log, store } = deps;
  const nowMs = await agreedTime(deps);
  if (nowMs === undefined) return;
  const abandoned = new Date(nowMs - PENDING_LIFE_MS);
  // However many leftovers cannot be removed, objects expire.
  const leftovers = (await store.removeLeftovers(abandoned, passedOver(log)).catch(passedOver(log))) ?? 0;
  const passOver = passedOver(log);
  const lives = differentLives(config);
  let removed = 0;
  for (const life of lives) {
    const time = new Date(nowMs - life * 1000 - useGranularityMs(config));
    // After the longest life an object of any kind has expired, so its record is not read.
    const isOver = async (address: ObjectAddress) =>
      !isStopping() &&
      (life === lives[0] || ((await lifeIn(store, address, config).catch(passOver)) ?? Infinity) <= life);
    for await (const address of store.unusedSince(time, isOver, passOver)) {
      if (isStopping()) break;
      const isRemoved = await remove(address, deps).then(() => true, passOver);
      if (isRemoved) removed++;
    }
  }
  if (leftovers + removed > 0) log.info({ leftovers, removed }, "swept object storage");
}

/** Undefined: one of the two clocks is wrong. The time is read once, so a clock that is set during a sweep changes nothing. */
async function agreedTime({ log, redisTime }: SweepDeps): Promise<number | undefined> {
  const beforeMs = Date.now();
  const toldMs = await redisTime();
  const reason = clockReason({ beforeMs, toldMs, afterMs: Date.now() }, "Redis's");
  if (reason === undefined) return beforeMs;
  log.warn(
    { reason },
    "sweeping object storage skipped, nothing expires: keep this machine and Redis's on one time server",
  );
  return undefined;
}

async function remove(address: ObjectAddress, { store, cache }: SweepDeps): Promise<void> {
  await cache.forget(address);
  await store.delete(address).catch((error: unknown) => {
    if (!(error instanceof StoreError && error.failure === "not_found")) throw error;
  });
}

/** The kind of a damaged object is not known, so it counts as the kind with the shortest life. */
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

/** `recount` runs after each sweep, even a failed one. */
export function startRetention(
  deps: SweepDeps,
  recount: (isStopping: () => boolean) => Promise<void>,
): Retention {
  const { config, log } = deps;
  const pause = Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, useGranularityMs(config)));
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let sweep: Promise<void> = Promise.resolve();
  const run = (): void => {
    const isStopping = () => stopping;
    sweep = sweepOnce(deps, isStopping)
      .finally(() => recount(isStopping))
      .then(
        () => pause,
        (error: Error) => {
          log.warn({ err: errorText(error) }, "sweeping object storage failed");
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
