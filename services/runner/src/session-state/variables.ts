/** Reads what Python's prelude says about the variables it saved: the first line of their file. A program can write anything there. Pure. */
import { type DroppedVariable, droppedVariablesSchema } from "@svc/contracts";
import { z } from "zod";

export const MAX_HEADER_BYTES = 64 * 1024;
const MAX_LISTED = 100;
const MAX_CHARS = 200;

export interface VariablesHeader {
  names: string[];
  dropped: DroppedVariable[];
}

const shown = (text: string) =>
  text
    .slice(0, MAX_CHARS)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}]/gu, "\ufffd");

const text = z.string().transform(shown);
const headerSchema = z.object({
  names: z.array(z.unknown()).transform((names) =>
    names
      .slice(0, MAX_LISTED)
      .filter((name) => typeof name === "string")
      .map(shown),
  ),
  dropped: z
    .array(z.unknown())
    .transform((items) => items.slice(0, MAX_LISTED))
    .pipe(z.array(z.object({ name: text, reason: text }))),
});

/** Takes the first bytes of the file. An invalid header counts as empty. */
export function parseHeader(start: Buffer): VariablesHeader {
  const end = start.subarray(0, MAX_HEADER_BYTES).indexOf("\n");
  if (end === -1) return { names: [], dropped: [] };
  try {
    return headerSchema.parse(JSON.parse(start.subarray(0, end).toString("utf8")));
  } catch {
    return { names: [], dropped: [] };
  }
}

/** The field of an answer, with as many variables as it may hold. */
export const droppedField = (dropped: readonly DroppedVariable[]) =>
  dropped.length === 0
    ? {}
    : { session_state_dropped: droppedVariablesSchema.parse(dropped.slice(0, MAX_LISTED)) };

const MAX_NAMED = 5;

/** A note on standard error; empty when everything was kept. */
export function droppedNotes(dropped: readonly DroppedVariable[]): string[] {
  if (dropped.length === 0) return [];
  const named = dropped.slice(0, MAX_NAMED).map(({ name, reason }) => `${name} (${reason})`);
  const more = dropped.length - named.length;
  const rest = more > 0 ? ` and ${more} more` : "";
  return [`Variables not kept: ${named.join(", ")}${rest}`];
}
