/** Turns failures of file system calls into StoreErrors. */
import { StoreError } from "../store.ts";

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes(String((error as { code?: unknown } | null)?.code));
}

/** Runs file system calls: a missing file is `not_found`, a taken name `exists`, everything else `unavailable`. */
export async function fsCall<T>(what: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    if (error instanceof StoreError) throw error;
    if (hasCode(error, "ENOENT", "ENOTDIR"))
      throw new StoreError("not_found", `${what}: no such object`, error);
    if (hasCode(error, "EEXIST", "ENOTEMPTY"))
      throw new StoreError("exists", `${what}: it exists already`, error);
    throw new StoreError("unavailable", `${what} failed`, error);
  }
}
