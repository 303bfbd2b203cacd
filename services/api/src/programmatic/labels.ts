/**
 * The labels that callers give to their requests, and cancel programs by. The label of a start is kept until its program ends, that of a
 * resume until its round and the pause after it are over. They are in Redis: any replica cancels.
 */
import { createHash } from "node:crypto";
import type { Principal } from "@svc/contracts";
import { type Config, type Redis, storeCall } from "@svc/service-kit";
import { roundAndPauseMs } from "./expiry.ts";

/** Longer than a program can run and pause. */
const START_LIFE_MS = 172_800_000;
const LABEL_HEADER = "x-librechat-code-request-id";
const MAX_LABEL_CHARS = 128;

export interface LabelDeps {
  config: Config;
  redis: Redis;
}

/** The label of a request: what its program may be cancelled by. */
export function labelOf(headers: Record<string, unknown>): string | undefined {
  const label = headers[LABEL_HEADER];
  return typeof label === "string" && label !== "" ? label.slice(0, MAX_LABEL_CHARS) : undefined;
}

/** For a start: the program is known by its label alone until it has paused. */
export async function rememberStart(
  { config, redis }: LabelDeps,
  principal: Principal,
  label: string,
  id: string,
): Promise<void> {
  const key = labelKey(principal, label);
  await storeCall(() =>
    redis
      .multi()
      .set(firstRoundKey(id), "1", "PX", roundAndPauseMs(config))
      .sadd(key, id)
      .pexpire(key, START_LIFE_MS)
      .exec(),
  );
}

/** For a resume. A label that lives longer already stays as it is: it may be that of a start, too. */
export async function rememberResume(
  { config, redis }: LabelDeps,
  principal: Principal,
  label: string,
  id: string,
): Promise<void> {
  const key = labelKey(principal, label);
  const lifeMs = roundAndPauseMs(config);
  await storeCall(() =>
    redis.multi().sadd(key, id).pexpire(key, lifeMs, "NX").pexpire(key, lifeMs, "GT").exec(),
  );
}

/** When the first round is over: from then on the program has a record, until that expires. */
export function endFirstRound({ redis }: LabelDeps, id: string): void {
  redis.del(firstRoundKey(id), cancelledKey(id)).catch(() => undefined);
}

/** Whether a first round of the program is made that has a label. */
export async function isInFirstRound({ redis }: LabelDeps, id: string): Promise<boolean> {
  return (await storeCall(() => redis.exists(firstRoundKey(id)))) === 1;
}

/** The programs of the principal that have the label. */
export async function programsOf(
  { redis }: LabelDeps,
  principal: Principal,
  label: string,
): Promise<string[]> {
  return storeCall(() => redis.smembers(labelKey(principal, label)));
}

/** For programs that were cancelled by it. */
export async function forgetLabel(
  { redis }: LabelDeps,
  principal: Principal,
  label: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length > 0) await storeCall(() => redis.srem(labelKey(principal, label), ...ids));
}

/** For a program that ended, in the background; a label that is not removed expires. */
export function forgetProgram(
  { redis }: LabelDeps,
  principal: Principal,
  labels: Iterable<string>,
  id: string,
): void {
  for (const label of labels) redis.srem(labelKey(principal, label), id).catch(() => undefined);
}

/** The mark of a program that was cancelled, for as long as its round may be made. */
export const cancelledKey = (id: string) => `svc:ptc-cancelled:${id}`;
const firstRoundKey = (id: string) => `svc:ptc:${id}:first`;

function labelKey({ tenantId, userId }: Principal, label: string): string {
  const owned = JSON.stringify([tenantId, userId, label]);
  return `svc:ptc:label:${createHash("sha256").update(owned).digest("base64url")}`;
}
