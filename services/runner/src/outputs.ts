/**
 * Decides what becomes of each file that a run left behind: stored, inherited, deleted or omitted. Pure: works on the
 * jail's listing and the inputs. Names come from the program, so each one passes the name rules before it is used.
 */
import { DIRKEEP, fileNameProblem, type NameLimits, type OmittedReason } from "@svc/contracts";

export interface InputRef {
  name: string;
  id: string;
  storage_session_id: string;
  entity_id?: string;
}

/** What was staged under one index. Without `ref`: the entry file, or a directory that storage asked for. */
export interface StagedInput {
  index: number;
  ref?: InputRef;
  readOnly: boolean;
}

export interface ListedFile {
  number: number;
  state: "new" | "changed" | "unchanged";
  /** Index of the staged input at this path. */
  input?: number;
  size: number;
  path: string;
}

export interface Listing {
  files: ListedFile[];
  emptyDirectories: string[];
  /** Indices of staged directories that are still there. */
  kept: number[];
  /** Indices of staged inputs that are gone. */
  missing: number[];
  omitted: { path: string; reason: "type" | "name" }[];
  /** Entries beyond the bound of the listing. */
  unlisted: number;
}

export interface OutputLimits {
  maxFiles: number;
  maxFileBytes: number;
  maxTotalBytes: number;
  names: NameLimits;
}

export interface PlannedUpload {
  name: string;
  size: number;
  /** Number in the listing; absent for the zero-byte file that stands for an empty directory. */
  number?: number;
  modifiedFrom?: InputRef;
}

export interface OmittedFile {
  name: string;
  reason: OmittedReason;
}

export interface OutputPlan {
  uploads: PlannedUpload[];
  inherited: InputRef[];
  deleted: string[];
  omitted: OmittedFile[];
  /** Entries that are omitted without being listed. */
  unlisted: number;
}

export function planOutputs(
  listing: Listing,
  inputs: readonly StagedInput[],
  limits: OutputLimits,
): OutputPlan {
  const byIndex = new Map(inputs.map((input) => [input.index, input]));
  const present = new Set<number>(listing.kept);
  const candidates: PlannedUpload[] = [];
  for (const file of listing.files) {
    const input = file.input === undefined ? undefined : byIndex.get(file.input);
    if (file.state === "unchanged" && input !== undefined) present.add(input.index);
    else if (!input?.readOnly) candidates.push(candidate(file, input));
  }
  for (const path of listing.emptyDirectories) candidates.push({ name: `${path}/${DIRKEEP}`, size: 0 });
  candidates.sort((left, right) => Buffer.compare(Buffer.from(left.name), Buffer.from(right.name)));

  const { uploads, omitted } = applyLimits(candidates, limits);
  const missing = new Set(listing.missing);
  const refs = inputs.filter((input): input is StagedInput & { ref: InputRef } => input.ref !== undefined);
  return {
    uploads,
    inherited: refs.filter((input) => input.readOnly || present.has(input.index)).map((input) => input.ref),
    deleted: refs
      .filter((input) => !input.readOnly && missing.has(input.index))
      .map((input) => input.ref.name),
    omitted: [...omitted, ...listing.omitted.map(({ path, reason }) => ({ name: path, reason }))],
    unlisted: listing.unlisted,
  };
}

function candidate(file: ListedFile, input: StagedInput | undefined): PlannedUpload {
  const base = { name: file.path, size: file.size, number: file.number };
  return file.state === "changed" && input?.ref !== undefined ? { ...base, modifiedFrom: input.ref } : base;
}

function applyLimits(candidates: readonly PlannedUpload[], limits: OutputLimits) {
  const uploads: PlannedUpload[] = [];
  const omitted: OmittedFile[] = [];
  let total = 0;
  for (const file of candidates) {
    let reason: OmittedReason | undefined;
    if (fileNameProblem(file.name, limits.names) !== undefined) reason = "name";
    else if (file.size > limits.maxFileBytes) reason = "size";
    else if (uploads.length >= limits.maxFiles) reason = "count";
    else if (total + file.size > limits.maxTotalBytes) reason = "total_size";
    if (reason !== undefined) {
      omitted.push({ name: file.name, reason });
      continue;
    }
    uploads.push(file);
    total += file.size;
  }
  return { uploads, omitted };
}

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

/** The `files_omitted` fields of an answer; empty when nothing was omitted. */
export function omittedFields(omitted: readonly OmittedFile[], unlisted: number) {
  const count = omitted.length + unlisted;
  if (count === 0) return {};
  const files_omitted = omitted
    .slice(0, MAX_LISTED)
    .map(({ name, reason }) => ({ name: shown(name), reason }));
  return { files_omitted, files_omitted_count: count };
}

/** Note lines for omitted files. Files that are no regular files are not worth a line. */
export function omittedNotes(omitted: readonly OmittedFile[], unlisted: number): string[] {
  const worth = omitted.filter(({ reason }) => reason !== "type");
  const notes = worth
    .slice(0, MAX_NOTES)
    .map(({ name, reason }) => `Output file omitted: ${shown(name)} (${reason})`);
  const more = worth.length + unlisted - notes.length;
  return more > 0 ? [...notes, `and ${more} more`] : notes;
}
