/** Which parts of a workspace become the session's state, and whether they equal what the run began with. Pure. */
import {
  LAST_VARIABLES_NAME,
  MAX_SNAPSHOT_ENTRIES,
  SNAPSHOT_NAME,
  UNFINISHED_VARIABLES_NAME,
  VARIABLES_NAME,
} from "@svc/contracts";
import { archivedPath, isArchivable, isSnapshotPath, type Member, staysInside } from "@svc/session-archive";
import { NOT_LISTED_IN_TIME } from "../outputs/omitted.ts";
import type { Listing, StagedInput } from "../outputs/outputs.ts";
import type { Restored } from "./restore.ts";

/** `number`: a file's number in the jail's listing. */
export type PlannedMember = Member & { number?: number };

export interface SnapshotPlan {
  members: PlannedMember[];
  /** Size of all files, in bytes. */
  size: number;
  /** The state is what the run began with. */
  isUnchanged: boolean;
  /** Why members are missing. */
  incomplete: string | undefined;
  /** Number of entries whose names cannot be in a snapshot. */
  unnamed: number;
  /** The variables are those that the run began with: the run ended without saving its own. */
  hasLastVariables: boolean;
}

export interface Workspace {
  listing: Listing;
  staged: readonly StagedInput[];
  restored: Restored | undefined;
  /** Path of the program's entry file. */
  entry: string;
  /** Directory of the compiled program. */
  build: string | undefined;
}

/** Caches of tools, which create them again. */
const CACHES: ReadonlySet<string> = new Set(["__pycache__", ".cache", ".npm", ".ipynb_checkpoints"]);

export function planSnapshot({ listing, staged, restored, entry, build }: Workspace): SnapshotPlan {
  const readOnly = new Set(staged.filter((input) => input.readOnly).map(({ index }) => index));
  const isKept = (path: string) =>
    path !== entry &&
    path !== UNFINISHED_VARIABLES_NAME &&
    path !== build &&
    !(build !== undefined && path.startsWith(`${build}/`)) &&
    !path.split("/").some((name) => CACHES.has(name));
  // Entries of any type count: no path may be in an archive twice.
  const hasOwnVariables = [listing.files, listing.directories, listing.symlinks]
    .flat()
    .some(({ path }) => path === VARIABLES_NAME);
  const hasLastVariables = !hasOwnVariables && listing.files.some(({ path }) => path === LAST_VARIABLES_NAME);
  const placeOf = (path: string) => {
    if (path === LAST_VARIABLES_NAME) return hasOwnVariables ? undefined : VARIABLES_NAME;
    return path;
  };
  const members: PlannedMember[] = [];
  let unnamed = listing.omitted.filter(({ path, reason }) => reason === "name" && isKept(path)).length;
  let changed = false;
  const add = (member: PlannedMember) => {
    if (isSnapshotPath(member.path) && isArchivable(archivedPath(member))) members.push(member);
    else if (member.path !== SNAPSHOT_NAME) unnamed++;
  };
  for (const { path, mode } of listing.directories) {
    if (isKept(path)) add({ type: "directory", path, mode });
  }
  for (const { path, target } of listing.symlinks) {
    if (isKept(path) && staysInside(path, target) && isArchivable(target))
      add({ type: "symlink", path, target });
  }
  for (const { path: found, mode, size, number, input, state } of listing.files) {
    const path = placeOf(found);
    if (path === undefined || !isKept(path) || (input !== undefined && readOnly.has(input))) continue;
    if (state !== "unchanged" && path === found) changed = true;
    add({ type: "file", path, mode, size, number });
  }
  const isUnchanged = !changed && isSame(members, restored);
  const size = members.reduce((sum, member) => sum + (member.type === "file" ? member.size : 0), 0);
  const isTooLong = members.length > MAX_SNAPSHOT_ENTRIES || listing.unlisted > 0;
  const tooLong = isTooLong ? "the workspace has too many files" : undefined;
  const incomplete = listing.timedOut ? NOT_LISTED_IN_TIME : tooLong;
  return { members, size, isUnchanged, incomplete, unnamed, hasLastVariables };
}

/** Whether the members are those that were restored. The jail compares the bytes of files. */
function isSame(members: readonly PlannedMember[], restored: Restored | undefined): boolean {
  if (restored === undefined) return members.length === 0;
  if (restored.isReplaced || members.length !== restored.members.size) return false;
  return members.every((member) => {
    const before = restored.members.get(member.path);
    if (before?.type !== member.type) return false;
    return member.type === "symlink"
      ? before.type === "symlink" && before.target === member.target
      : before.type !== "symlink" && before.mode === member.mode;
  });
}
