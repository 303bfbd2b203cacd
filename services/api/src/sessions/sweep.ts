/** Deletes session snapshots that nothing needs any more. One replica sweeps in each interval. A failed deletion is retried by the next sweep. */
import { newId, ServiceError, snapshotNamespaceOf } from "@svc/contracts";
import type { Config, Log, Redis } from "@svc/service-kit";
import type { SessionStore, UnneededSnapshot } from "@svc/session-store";
import type { FileStorage } from "../files/file-storage.ts";

/** A lock that lasts for most of an interval, so that only one replica sweeps. */
const LOCK = "svc:sessions:sweep";
const SHARE = 0.9;

export interface SweepDeps {
  config: Pick<Config, "SVC_SESSION_STATE_SWEEP_SECONDS">;
  log: Log;
  redis: Redis;
  sessions: SessionStore;
  storage: Pick<FileStorage, "delete">;
}

/** Returns a function that stops the sweep. */
export function startSweep(deps: SweepDeps): () => void {
  const intervalMs = deps.config.SVC_SESSION_STATE_SWEEP_SECONDS * 1000;
  const timer = setInterval(() => {
    sweep(deps, intervalMs * SHARE).catch((err) =>
      deps.log.warn({ err }, "sweeping snapshots of sessions failed"),
    );
  }, intervalMs);
  return () => clearInterval(timer);
}

async function sweep({ log, redis, sessions, storage }: SweepDeps, lockMs: number): Promise<void> {
  const isOurs = await redis.set(LOCK, newId(), "PX", Math.ceil(lockMs), "NX");
  if (isOurs !== "OK") return;
  const endMs = performance.now() + lockMs;
  let deleted = 0;
  let failed = 0;
  // After the lock another replica may sweep.
  while (performance.now() < endMs) {
    const unneeded = await sessions.unneeded(failed);
    if (unneeded.length === 0) break;
    const gone: UnneededSnapshot[] = [];
    for (const snapshot of unneeded) {
      try {
        await remove(snapshot, storage);
        gone.push(snapshot);
      } catch (err) {
        log.warn({ err }, "deleting a snapshot of a session failed");
      }
    }
    await sessions.forget(gone);
    deleted += gone.length;
    failed += unneeded.length - gone.length;
  }
  if (deleted > 0) log.info({ deleted }, "swept snapshots of sessions");
}

/** Deletes a snapshot. One that is not found counts as deleted: it may never have been stored. */
async function remove(
  { storage_session_id: session, id: file, namespace }: UnneededSnapshot,
  storage: SweepDeps["storage"],
): Promise<void> {
  try {
    await storage.delete({ session, file }, snapshotNamespaceOf(namespace), { requestId: newId() });
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === "file_not_found")) throw error;
  }
}
