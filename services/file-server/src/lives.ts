/** How long objects of each kind live after their last use, in seconds. Pure. */
import { isSnapshotNamespace, type ObjectRecord } from "@svc/contracts";
import type { Config } from "@svc/service-kit";

/** Of objects whose session was not committed, after they came. Uploads that take longer are given up. */
export const PENDING_LIFE_MS = 6 * 3_600_000;

type Lives = Pick<
  Config,
  "SESSION_CACHE_TTL" | "SVC_UPLOAD_TTL_SECONDS" | "SVC_OUTPUT_TTL_SECONDS" | "SVC_SESSION_STATE_TTL_SECONDS"
>;

/**
 * A state that a session still names must be there. A session lives from the begin of its last run, where storage may have been away and
 * no use of the state was noted, so the state lives twice as long. The API's sweep takes it as soon as no session names it.
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

/** All lives that there are, the longest first. */
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
