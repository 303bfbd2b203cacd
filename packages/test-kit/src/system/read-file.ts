/** Files of the kernel and of processes, which may be gone at any time. */
import { readFileSync } from "node:fs";

/** Empty for a file that is not there or cannot be read. Bytes become characters one by one. */
export function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
