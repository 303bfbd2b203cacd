/**
 * Finds out from the kernel why a live process makes no progress. For processes of other users this needs root; otherwise
 * nothing is known.
 */
import { readdirSync, readFileSync } from "node:fs";
import { statFields } from "./process.ts";

/** With fewer free descriptors the process can hardly open a connection. */
const LEAST_FREE = 4;

/** Undefined when nothing blocks the process. */
export function standstillOf(pid: number): string | undefined {
  const state = statFields(pid)?.[0];
  if (state === "T" || state === "t") return `is stopped by a signal (kill -CONT ${pid} lets it go on)`;
  const { open, limit } = descriptorsOf(pid);
  if (open === undefined || limit === undefined || limit - open >= LEAST_FREE) return undefined;
  return `has no file descriptors left (${open} of ${limit} are open)`;
}

function descriptorsOf(pid: number): { open?: number; limit?: number } {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, "utf8"))?.[1];
    const open = readdirSync(`/proc/${pid}/fd`).length;
    return limit === undefined ? { open } : { open, limit: Number(limit) };
  } catch {
    return {};
  }
}
