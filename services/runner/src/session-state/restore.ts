/**
 * Restores the state of a session into a fresh jail. The snapshot is read as a stream and its members are staged like other inputs: the jail
 * resolves each path beneath the workspace, and what the run changes is known afterwards.
 */
import type { JailRun } from "@svc/jail-client";
import type { Member } from "@svc/session-archive";
import { decompress, readArchive } from "@svc/session-archive";
import type { StagedFiles } from "../inputs/inputs.ts";
import type { StagedInput } from "../outputs/outputs.ts";

export interface Restored {
  /** The restored members, by path. */
  members: ReadonlyMap<string, Member>;
  /** Whether inputs of the request replace some members. */
  isReplaced: boolean;
  staged: StagedInput[];
}

/**
 * Stages a snapshot and the directories of the request. A directory may be in both, and jaild takes each path once. Throws DamagedArchive, what the
 * source throws, or a JailError; the jail is then unusable.
 */
export async function restore(
  source: AsyncIterable<Buffer>,
  jail: Pick<JailRun, "file" | "directory" | "symlink">,
  files: StagedFiles,
  maxBytes: number,
): Promise<Restored> {
  const members = new Map<string, Member>();
  const staged: StagedInput[] = [];
  const add = () => {
    const index = files.staged.length + staged.length;
    staged.push({ index, readOnly: false, restored: true });
    return index;
  };
  let isReplaced = false;
  for await (const { body, ...member } of readArchive(decompress(source, maxBytes))) {
    if (files.own.excludes(member)) {
      isReplaced = true;
      for await (const _ of body);
      continue;
    }
    members.set(member.path, member);
    if (member.type === "symlink") await jail.symlink(member.path, member.target);
    if (member.type !== "file") continue;
    const { path, size, mode } = member;
    await jail.file({ index: add(), path, size, mode, readOnly: false }, body);
  }
  for (const [path, index] of files.directories) if (!members.has(path)) await jail.directory(index, path);
  // Directories with modes come last: their mode may forbid the owner to write to them.
  for (const member of members.values()) {
    if (member.type !== "directory") continue;
    await jail.directory(files.directories.get(member.path) ?? add(), member.path, member.mode);
  }
  return { members, isReplaced, staged };
}
