/** Whether this process can open further files and connections. */
import { readdirSync, readFileSync } from "node:fs";
import type { Check } from "./readiness.ts";

/** With fewer free descriptors than this, requests would soon use them up, so the process must get no further requests. */
const LEAST_FREE = 16;

export const descriptorsCheck: Check = () => {
  try {
    const limit = Number(/^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]);
    // One of the listed descriptors is the one that reads the list.
    const free = limit - (readdirSync("/proc/self/fd").length - 1);
    // Without a limit the text is "unlimited", so `limit` and `free` are NaN and the check passes.
    if (!(free < LEAST_FREE)) return undefined;
    return `file descriptors run out: ${Math.max(0, free)} of ${limit} are left`;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "EMFILE") return "no file descriptor is left";
    if (code === "ENFILE") return "the machine has no file descriptor left";
    throw error;
  }
};
