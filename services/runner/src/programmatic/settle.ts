/** When a batch of tool calls is complete: when nothing of the program moves any more without an answer. Pure. */
import type { TaskState } from "@svc/jail-client";

export interface Moment {
  state: TaskState;
  nowMs: number;
  /** When the first call of this batch was issued. */
  firstCallMs: number;
  /** When a call was issued or bytes of one came in, the last time. */
  activityMs: number;
  /** A call is on its way in. */
  arriving: boolean;
  /** Recorded calls that the program has not repeated yet. */
  unused: number;
}

export interface SettleTimes {
  settleMs: number;
  settleMaxMs: number;
}

/** A program that repeats itself may sleep where its first attempt slept: so long it is waited for. */
export const CATCH_UP_MS = 10_000;
/** Between two looks at the program. */
const LOOK = { soonest: 1, latest: 10 } as const;

export function batchIsComplete(moment: Moment, { settleMs, settleMaxMs }: SettleTimes): boolean {
  const { state, nowMs, firstCallMs, activityMs, arriving, unused } = moment;
  const quietMs = nowMs - activityMs;
  if (state === "blocked" && !arriving) return true;
  if (unused > 0) return state !== "running" && quietMs >= Math.max(CATCH_UP_MS, settleMs);
  return (state !== "running" && quietMs >= settleMs) || nowMs - firstCallMs >= settleMaxMs;
}

/** How long to wait before the next look: short at first, then growing with the quiet. */
export function nextLookMs({ nowMs, activityMs }: Pick<Moment, "nowMs" | "activityMs">): number {
  return Math.min(LOOK.latest, Math.max(LOOK.soonest, (nowMs - activityMs) / 4));
}
