/** Peak memory of processes over a span of time. Needs root. */
import { readFileSync, writeFileSync } from "node:fs";

const MIB = 2 ** 20;

/** Starts to watch; the answer tells by how many MiB the resident set was at most above what it is now. */
export function watchPeak(pid: number): () => number {
  // Sets the kernel's high-water mark back to the present size.
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  const before = kibibytes(pid, "VmRSS");
  return () => ((kibibytes(pid, "VmHWM") - before) * 1024) / MIB;
}

function kibibytes(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]);
}
