/**
 * Decides what becomes of each file that a run left behind: stored, inherited, deleted or omitted. Pure: works on the
 * jail's listing and the inputs. Names come from the program, so each one passes the name rules before it is used.
 */
import {
  DIRKEEP,
  directoriesOf,
  fileNameProblem,
  type NameLimits,
  type OmittedReason,
  type Quota,
} from "@svc/contracts";

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
  /** Part of the state of a session. */
  restored?: boolean;
}

export interface ListedFile {
  number: number;
  state: "new" | "changed" | "unchanged";
  /** Index of the staged input at this path. */
  input?: number;
  size: number;
  /** Permission bits. */
  mode: number;
  path: string;
}

export interface Listing {
  files: ListedFile[];
  emptyDirectories: string[];
  /** All directories. The jail lists them, and symlinks, only for a session's run. */
  directories: { path: string; mode: number }[];
  symlinks: { path: string; target: string }[];
  /** Indices of staged directories that are still there. */
  kept: number[];
  /** Indices of staged inputs that are gone. */
  missing: number[];
  omitted: { path: string; reason: "type" | "name" }[];
  /** The jail could not look at all of it in time. */
  timedOut: boolean;
  /** Some inputs that are listed as changed may be unchanged. */
  uncompared: boolean;
  /** Number of entries that are not listed; a lower bound when `timedOut`. */
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
  /** With reason `size`: the file's size in bytes. */
  size?: number;
  /** With reason `quota`: the quota that had no room. */
  quota?: Quota;
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
  const tooLong: OmittedFile[] = [];
  const consider = (file: PlannedUpload): void => {
    if (isFarTooLong(file.name, limits.names)) tooLong.push({ name: file.name, reason: "name" });
    else candidates.push(file);
  };
  for (const file of listing.files) {
    const input = file.input === undefined ? undefined : byIndex.get(file.input);
    if (file.state === "unchanged" && input !== undefined) present.add(input.index);
    else if (!input?.readOnly) consider(candidate(file, input));
  }
  for (const path of listing.emptyDirectories) consider({ name: `${path}/${DIRKEEP}`, size: 0 });

  const refs = inputs.filter((input): input is StagedInput & { ref: InputRef } => input.ref !== undefined);
  const standing = refs.filter((input) => input.readOnly || present.has(input.index));
  const { kept, fresh } = besideInputs(inByteOrder(candidates), standing);
  const { uploads, omitted } = applyLimits(fresh, limits, kept);
  const missing = new Set(listing.missing);
  return {
    uploads,
    inherited: kept,
    deleted: refs
      .filter((input) => !input.readOnly && missing.has(input.index))
      .map((input) => input.ref.name),
    omitted: [...omitted, ...tooLong, ...listing.omitted.map(({ path, reason }) => ({ name: path, reason }))],
    unlisted: listing.unlisted,
  };
}

/** A name of so many code units is always beyond the limit. Programs may make thousands of paths of thousands of characters. */
function isFarTooLong(name: string, { maxLength }: NameLimits): boolean {
  return name.length > 2 * maxLength;
}

function inByteOrder(files: readonly PlannedUpload[]): PlannedUpload[] {
  return files
    .map((file) => ({ file, key: Buffer.from(file.name) }))
    .sort((left, right) => Buffer.compare(left.key, right.key))
    .map(({ file }) => file);
}

function candidate(file: ListedFile, input: StagedInput | undefined): PlannedUpload {
  const base = { name: file.path, size: file.size, number: file.number };
  return file.state === "changed" && input?.ref !== undefined ? { ...base, modifiedFrom: input.ref } : base;
}

/**
 * A file may have the name of an input that is still there: of a read-only one, which stays
 * as it was, or of a directory's `.dirkeep`, which the file changes.
 */
function besideInputs(
  candidates: readonly PlannedUpload[],
  standing: readonly (StagedInput & { ref: InputRef })[],
): { kept: InputRef[]; fresh: PlannedUpload[] } {
  const byName = new Map(standing.map((input) => [input.ref.name, input]));
  const fresh: PlannedUpload[] = [];
  for (const file of candidates) {
    const input = byName.get(file.name);
    if (input?.readOnly) continue;
    if (input !== undefined) byName.delete(file.name);
    fresh.push(input === undefined ? file : { ...file, modifiedFrom: input.ref });
  }
  return { kept: [...byName.values()].map(({ ref }) => ref), fresh };
}

/** Two files whose paths exclude each other could never be staged together again: the inherited one wins. */
function crossing(inherited: readonly InputRef[]): (name: string) => boolean {
  const files = new Set(inherited.map(({ name }) => name));
  const directories = new Set(inherited.flatMap(({ name }) => directoriesOf(name)));
  return (name) => directories.has(name) || directoriesOf(name).some((directory) => files.has(directory));
}

function applyLimits(
  candidates: readonly PlannedUpload[],
  limits: OutputLimits,
  inherited: readonly InputRef[],
) {
  const crosses = crossing(inherited);
  const uploads: PlannedUpload[] = [];
  const omitted: OmittedFile[] = [];
  let total = 0;
  for (const file of candidates) {
    let reason: OmittedReason | undefined;
    if (fileNameProblem(file.name, limits.names) !== undefined || crosses(file.name)) reason = "name";
    else if (file.size > limits.maxFileBytes) reason = "size";
    else if (uploads.length >= limits.maxFiles) reason = "count";
    else if (total + file.size > limits.maxTotalBytes) reason = "total_size";
    if (reason !== undefined) {
      omitted.push({ name: file.name, reason, ...(reason === "size" ? { size: file.size } : {}) });
      continue;
    }
    uploads.push(file);
    total += file.size;
  }
  return { uploads, omitted };
}
