/**
 * The labels that callers give to their requests, and cancel programs by. The label of a start is kept until its program ends, that of a
 * resume until its round and the pause after it are over. They are in Redis, so any replica cancels: for each label the programs by the time,
 * ms since 1970, until which they may live without a further resume.
 */
import { createHash } from "node:crypto";
import type { Principal } from "@svc/contracts";
import { type CancellationKind, type Config, type Redis, storeCall } from "@svc/service-kit";
import type { ChainableCommander } from "ioredis";
import { roundAndPauseMs } from "./expiry.ts";

const LABEL_HEADER = "x-librechat-code-request-id";
const MAX_LABEL_CHARS = 128;

/** Cancellations of rounds: every replica hears of one, and aborts the rounds that it makes of that program. */
export const PROGRAM_CANCELLATIONS = {
  channel: "svc:ptc:cancelled",
  markKey: (id) => `svc:ptc-cancelled:${id}`,
  // A program has its label, and so can be cancelled, from when its round has begun.
  rememberedMs: 0,
} as const satisfies CancellationKind;

export interface LabelDeps {
  config: Config;
  redis: Redis;
}

/** The label of a request: what its program may be cancelled by. */
export function labelOf(headers: Record<string, unknown>): string | undefined {
  const label = headers[LABEL_HEADER];
  return typeof label === "string" && label !== "" ? keptOf(label) : undefined;
}

/** For a start: the program is known by its label alone until it has paused. */
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

/** For a resume. The label of the start is renewed so by each. */
export async function rememberResume(
  { config, redis }: LabelDeps,
  principal: Principal,
  label: string,
  id: string,
): Promise<void> {
  const key = labelKey(principal, label);
  await storeCall(() => adding(redis.multi(), key, id, roundAndPauseMs(config)).exec());
}

/** Programs that have outlived what they were added for leave. Clocks of replicas differ by less than a program is kept for too long. */
function adding(commands: ChainableCommander, key: string, id: string, lifeMs: number): ChainableCommander {
  const now = Date.now();
  return commands
    .zremrangebyscore(key, "-inf", now)
    .zadd(key, now + lifeMs, id)
    .pexpire(key, lifeMs);
}

/** When the first round is over: from then on the program has a record, until that expires. */
export function endFirstRound({ redis }: LabelDeps, id: string): void {
  redis.del(firstRoundKey(id), PROGRAM_CANCELLATIONS.markKey(id)).catch(() => undefined);
}

/** Which of these programs have a label and are in their first round. */
export async function inFirstRound({ redis }: LabelDeps, ids: readonly string[]): Promise<boolean[]> {
  const marks = await storeCall(() => redis.mget(ids.map(firstRoundKey)));
  return marks.map((mark) => mark !== null);
}

/** Programs of the principal that have the label, `most` of them. */
export async function programsOf(
  { redis }: LabelDeps,
  principal: Principal,
  label: string,
  most: number,
): Promise<string[]> {
  return storeCall(() => redis.zrange(labelKey(principal, label), "0", String(most - 1)));
}

/** For programs that were cancelled by it, or of which nothing is left. */
export async function forgetLabel(
  { redis }: LabelDeps,
  principal: Principal,
  label: string,
  ids: readonly string[],
): Promise<void> {
  await storeCall(() => redis.zrem(labelKey(principal, label), ...ids));
}

/** For a program that ended, in the background; a label that is not removed expires. */
export function forgetProgram(
  { redis }: LabelDeps,
  principal: Principal,
  labels: Iterable<string>,
  id: string,
): void {
  for (const label of labels) redis.zrem(labelKey(principal, label), id).catch(() => undefined);
}

/** The same of a label that a program is given and of one that it is cancelled by. */
const keptOf = (label: string) => label.slice(0, MAX_LABEL_CHARS);

const firstRoundKey = (id: string) => `svc:ptc:${id}:first`;

function labelKey({ tenantId, userId }: Principal, label: string): string {
  const owned = JSON.stringify([tenantId, userId, keptOf(label)]);
  return `svc:ptc:labelled:${createHash("sha256").update(owned).digest("base64url")}`;
}
