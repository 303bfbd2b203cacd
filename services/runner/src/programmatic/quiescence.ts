/** Decides when a batch of tool calls is complete: when no task of the program can go on without an answer. Pure. */
import type { TaskState } from "@svc/jail-client";

export interface Observation {
  state: TaskState;
  nowMs: number;
  /** When the first call of this batch was issued. */
  firstCallMs: number;
  /** When a call was last issued, or bytes of one last arrived. */
  activityMs: number;
  /** A call is on its way in. */
  arriving: boolean;
  /** Recorded calls that the program has not repeated yet. */
  unused: number;
}

export interface QuiescenceTimes {
  settleMs: number;
  settleMaxMs: number;
}

/** A replayed program may sleep where its first attempt slept: it gets this long to make its recorded calls. */
export const CATCH_UP_MS = 10_000;
/** Bounds of the time between two checks of the program. */
const CHECK = { soonest: 1, latest: 10 } as const;

export function batchIsComplete(
  observation: Observation,
  { settleMs, settleMaxMs }: QuiescenceTimes,
): boolean {
  const { state, nowMs, firstCallMs, activityMs, arriving, unused } = observation;
  const quietMs = nowMs - activityMs;
  if (state === "blocked" && !arriving) return true;
  if (unused > 0) return state !== "running" && quietMs >= Math.max(CATCH_UP_MS, settleMs);
  return (state !== "running" && quietMs >= settleMs) || nowMs - firstCallMs >= settleMaxMs;
}

/** How long to wait before the next check: short at first, then growing with the quiet. */
export function nextCheckMs({ nowMs, activityMs }: Pick<Observation, "nowMs" | "activityMs">): number {
  return Math.min(CHECK.latest, Math.max(CHECK.soonest, (nowMs - activityMs) / 4));
}
