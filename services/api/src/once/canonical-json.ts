/** One text for bodies that differ in the order of their keys only. Pure. */
import { ServiceError } from "@svc/contracts";

/** JSON with sorted keys: bodies that differ in key order only are the same. */
export function canonicalJson(value: unknown): string {
  try {
    return JSON.stringify(value, sortedKeys) ?? "";
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ServiceError("invalid_json", "The request body is nested too deeply.");
  }
}

function sortedKeys(_key: string, item: unknown): unknown {
  return typeof item === "object" && item !== null && !Array.isArray(item)
    ? Object.fromEntries(Object.entries(item).sort(([left], [right]) => (left < right ? -1 : 1)))
    : item;
}
