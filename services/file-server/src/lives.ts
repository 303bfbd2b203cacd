/** How long objects of each kind live after their last use, in seconds. Pure. */
import { isSnapshotNamespace, type ObjectRecord } from "@svc/contracts";
import type { Config } from "@svc/service-kit";

/** Life of pending objects from their arrival. An upload whose session is not committed by then is given up. */
export const PENDING_LIFE_MS = 6 * 3_600_000;

type Lives = Pick<
  Config,
  "SESSION_CACHE_TTL" | "SVC_UPLOAD_TTL_SECONDS" | "SVC_OUTPUT_TTL_SECONDS" | "SVC_SESSION_STATE_TTL_SECONDS"
>;

/**
 * A snapshot must exist as long as a session names it. A session's life counts from the start of its last run. Storage may have been away then,
 * so that no use of the snapshot was recorded. Therefore the snapshot lives twice as long. The API's sweep removes it as soon as no session names
 * it.
 */
const lifeOfState = ({ SESSION_CACHE_TTL, SVC_SESSION_STATE_TTL_SECONDS }: Lives) =>
  Math.max(SESSION_CACHE_TTL, 2 * SVC_SESSION_STATE_TTL_SECONDS);

export function lifeOf({ namespace, origin }: Pick<ObjectRecord, "namespace" | "origin">, config: Lives) {
  const { SESSION_CACHE_TTL: common } = config;
  if (isSnapshotNamespace(namespace)) return lifeOfState(config);
  if (origin === "upload") return config.SVC_UPLOAD_TTL_SECONDS || common;
  if (origin === "output") return config.SVC_OUTPUT_TTL_SECONDS || common;
  return common;
}

/** All distinct lives, the longest first. */
export function differentLives(config: Lives): number[] {
  const { SESSION_CACHE_TTL: common } = config;
  const lives = [
    common,
    config.SVC_UPLOAD_TTL_SECONDS || common,
    config.SVC_OUTPUT_TTL_SECONDS || common,
    lifeOfState(config),
  ];
  return [...new Set(lives)].sort((one, other) => other - one);
}

export const shortestLife = (config: Lives): number =>
  differentLives(config).at(-1) ?? config.SESSION_CACHE_TTL;
