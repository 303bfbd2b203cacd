/**
 * Limits that a program reached without being ended by them. It saw ordinary system errors, which do not say whose limit it was; the answer does.
 * Only limits that show from outside are known, which excludes the number of open files. Pure.
 */

import type { ReachedLimit } from "@svc/contracts";
import { byteSize, grouped } from "@svc/contracts";
import type { RunOutcome } from "@svc/jail-client";
import type { RunLimits } from "../admission/limits.ts";

export function reachedLimits(
  { end, listing }: Pick<RunOutcome, "end" | "listing">,
  { fileBytes }: Pick<RunLimits, "fileBytes">,
): ReachedLimit[] {
  // Not derived from SIGXFSZ: programs can send that signal as well.
  const tooLarge = listing.files.some(({ state, size }) => state !== "unchanged" && size >= fileBytes);
  return tooLarge ? [...end.reached, { limit: "file_size", value: fileBytes }] : end.reached;
}

const NOTES: Record<ReachedLimit["limit"], (value: number) => string> = {
  processes: (value) => `Process limit reached (${grouped(value)} processes and threads)`,
  file_size: (value) => `File size limit reached (${byteSize(value)})`,
  workspace_bytes: (value) => `Workspace full (${byteSize(value)})`,
  workspace_files: (value) => `Workspace full (${grouped(value)} files)`,
  tmp_bytes: (value) => `/tmp full (${byteSize(value)})`,
  tmp_files: (value) => `/tmp full (${grouped(value)} files)`,
  shm_bytes: (value) => `/dev/shm full (${byteSize(value)})`,
  shm_files: (value) => `/dev/shm full (${grouped(value)} files)`,
};

export function reachedNotes(reached: readonly ReachedLimit[]): string[] {
  return reached.map(({ limit, value }) => NOTES[limit](value));
}
