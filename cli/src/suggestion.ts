/** Finds the name that a person probably meant. Pure. */
import { editDistance, nearestName } from "@svc/service-kit/config/nearest";

const MAX_DISTANCE = 2;

/** A known name that is at most two edits away, and in which at least half of the characters are right. */
export function suggestion(name: string, known: readonly string[]): string | undefined {
  const nearest = nearestName(name, known);
  const distance = editDistance(name, nearest);
  const isNear = distance <= MAX_DISTANCE && 2 * distance <= Math.max(name.length, nearest.length);
  return isNear ? nearest : undefined;
}
