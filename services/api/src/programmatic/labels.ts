/**
 * The labels that callers give to their requests and later use to cancel programs. The label of a start is kept until its program ends.
 * The label of a resume is kept until its round and the pause after it are over. Labels are in Redis, so any replica can cancel. Each label
 * is a sorted set of programs; the score is the time, ms since 1970, until which a program may live without a further resume.
 */
import { createHash } from "node:crypto";
import type { Principal } from "@svc/contracts";
import { type CancellationKind, type Config, type Redis, storeCall } from "@svc/service-kit";
import type { ChainableCommander } from "ioredis";
import { roundAndPauseMs } from "./expiry.ts";

const LABEL_HEADER = "x-librechat-code-request-id";
const MAX_LABEL_CHARS = 128;

/** Cancellations of rounds: every replica receives each one, and aborts its own rounds of that program. */
export const PROGRAM_CANCELLATIONS = {
  channel: "svc:ptc:cancelled",
  markKey: (id) => `svc:ptc-cancelled:${id}`,
  // Nothing to remember: a program gets its label, and so can be cancelled, only after its round has begun.
  rememberedMs: 0,
} as const satisfies CancellationKind;

export interface LabelDeps {
  config: Config;
  redis: Redis;
}

/** The label of a request, which can later cancel its program. */
export function labelOf(headers: Record<string, unknown>): string | undefined {
  const label = headers[LABEL_HEADER];
  return typeof label === "string" && label !== "" ? keptOf(label) : undefined;
}

/** Stores the label of a start. Until the program pauses, a cancellation can find it only by this label. */
export async function rememberStart(
  { config, redis }: LabelDeps,
  principal: Principal,
  label: string,
  id: string,
): Promise<void> {
  const lifeMs = roundAndPauseMs(config);
  const mark = redis.multi().set(firstRoundKey(id), "1", "PX", lifeMs);
  await storeCall(() => adding(mark, labelKey(principal, label), id, lifeMs).exec());
}

/** Stores the label of a resume. Each resume also renews the label of the start this way. */
export async function rememberResume(
  { config, redis }: LabelDeps,
  principal: Principal,
  label: string,
  id: string,
): Promise<void> {
  const key = labelKey(principal, label);
  await storeCall(() => adding(redis.multi(), key, id, roundAndPauseMs(config)).exec());
}

/** Adds a program and removes expired ones. Clock skew between replicas is smaller than the surplus in `lifeMs`. */
function adding(commands: ChainableCommander, key: string, id: string, lifeMs: number): ChainableCommander {
  const now = Date.now();
  return commands
    .zremrangebyscore(key, "-inf", now)
    .zadd(key, now + lifeMs, id)
    .pexpire(key, lifeMs);
}

/** Called when the first round is over. A paused program has a record from then on, until that expires. */
export function endFirstRound({ redis }: LabelDeps, id: string): void {
  redis.del(firstRoundKey(id), PROGRAM_CANCELLATIONS.markKey(id)).catch(() => undefined);
}

/** Which of these programs have a label and are in their first round. */
export async function inFirstRound({ redis }: LabelDeps, ids: readonly string[]): Promise<boolean[]> {
  const marks = await storeCall(() => redis.mget(ids.map(firstRoundKey)));
  return marks.map((mark) => mark !== null);
}

/** Programs of the principal that have the label, at most `most`. */
export async function programsOf(
  { redis }: LabelDeps,
  principal: Principal,
  label: string,
  most: number,
): Promise<string[]> {
  return storeCall(() => redis.zrange(labelKey(principal, label), "0", String(most - 1)));
}

/** Removes a label from programs that it cancelled or that no longer exist. */
export async function forgetLabel(
  { redis }: LabelDeps,
  principal: Principal,
  label: string,
  ids: readonly string[],
): Promise<void> {
  await storeCall(() => redis.zrem(labelKey(principal, label), ...ids));
}

/** Removes the labels of a program that ended, in the background. If that fails, they expire. */
export function forgetProgram(
  { redis }: LabelDeps,
  principal: Principal,
  labels: Iterable<string>,
  id: string,
): void {
  for (const label of labels) redis.zrem(labelKey(principal, label), id).catch(() => undefined);
}

/** Cuts labels to the same length when a program gets one and when it is cancelled by one. */
const keptOf = (label: string) => label.slice(0, MAX_LABEL_CHARS);

const firstRoundKey = (id: string) => `svc:ptc:${id}:first`;

function labelKey({ tenantId, userId }: Principal, label: string): string {
  const owned = JSON.stringify([tenantId, userId, keptOf(label)]);
  return `svc:ptc:labelled:${createHash("sha256").update(owned).digest("base64url")}`;
}
