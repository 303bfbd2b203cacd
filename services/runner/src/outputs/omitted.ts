/** What callers learn about omitted files: the fields of the answer and the note lines. Pure. */
import { byteSize, type ExecuteResponse, grouped, quotaUse } from "@svc/contracts";
import type { Listing, OmittedFile, OutputLimits } from "./outputs.ts";

const MAX_LISTED = 100;
const MAX_NOTES = 5;
/** Names in answers are bounded: a program may make paths of thousands of characters. */
const MAX_SHOWN_CHARS = 300;

const shown = (name: string) => {
  const printable = name.toWellFormed().replace(/\p{Cc}/gu, "\ufffd");
  return printable.length > MAX_SHOWN_CHARS
    ? `${printable.slice(0, MAX_SHOWN_CHARS).toWellFormed()}…`
    : printable;
};

/** The `files_omitted` fields of an answer, each only when it says something: the list may be empty where the count is not. */
export function omittedFields(
  omitted: readonly OmittedFile[],
  unlisted: number,
): Pick<ExecuteResponse, "files_omitted" | "files_omitted_count"> {
  const count = omitted.length + unlisted;
  if (count === 0) return {};
  const files_omitted = omitted
    .slice(0, MAX_LISTED)
    .map(({ name, reason }) => ({ name: shown(name), reason }));
  return { ...(files_omitted.length > 0 ? { files_omitted } : {}), files_omitted_count: count };
}

type NotedLimits = Pick<OutputLimits, "maxFiles" | "maxFileBytes" | "maxTotalBytes">;

/** The reason with its limit and, if there is one, a remedy. */
function reasonText({ reason, size, quota }: OmittedFile, limits: NotedLimits): string {
  switch (reason) {
    case "size":
      return `${reason}: ${grouped(size ?? 0)} bytes, at most ${byteSize(limits.maxFileBytes)}`;
    case "count":
      return `${reason}: at most ${grouped(limits.maxFiles)} files are returned, an archive counts as one`;
    case "total_size":
      return `${reason}: at most ${byteSize(limits.maxTotalBytes)} together`;
    case "quota":
      return quota === undefined ? reason : `${reason}: ${quotaUse(quota)}`;
    default:
      return reason;
  }
}

export const NOT_LISTED_IN_TIME = "the workspace could not be listed in time";

const NOT_COMPARED_IN_TIME =
  "Input files could not be compared in time: some that are returned as changed may be unchanged";

/** Note lines for omitted files, and for inputs that may be among the outputs. Entries that are not regular files get no line. */
export function omittedNotes(
  omitted: readonly OmittedFile[],
  { unlisted, timedOut, uncompared }: Pick<Listing, "unlisted" | "timedOut" | "uncompared">,
  limits: NotedLimits,
): string[] {
  const worth = omitted.filter(({ reason }) => reason !== "type");
  const notes = worth
    .slice(0, MAX_NOTES)
    .map((file) => `Output file omitted: ${shown(file.name)} (${reasonText(file, limits)})`);
  const more = worth.length + unlisted - notes.length;
  if (timedOut) notes.push(`Output files omitted: ${NOT_LISTED_IN_TIME}`);
  else if (more > 0) notes.push(`and ${more} more`);
  if (uncompared) notes.push(NOT_COMPARED_IN_TIME);
  return notes;
}
