/** The members of a snapshot, and the rules for them, both when it is saved and when it is restored. Pure. */
import { hash } from "node:crypto";
import { MAX_SNAPSHOT_ENTRIES, SNAPSHOT_NAME } from "@svc/contracts";

/** `mode`: permission bits. Owners and times are not kept. Paths are relative to the workspace. */
export type Member =
  | { type: "file"; path: string; mode: number; size: number }
  | { type: "directory"; path: string; mode: number }
  | { type: "symlink"; path: string; target: string };

/** The archive is not one that a runner made. */
export class DamagedArchive extends Error {}

/** The archive is larger than the current limit of a state. It need not be damaged: it may have been saved under a higher limit. */
export class LargeArchive extends Error {}

/** Path of the workspace in its jail. */
const WORKSPACE = "/mnt/data";
/** Limits of the jail (frame.h). */
const MAX_PATH_BYTES = 4096;
const MAX_SEGMENTS = 64;
const MAX_SEGMENT_BYTES = 255;
const MAX_TARGET_BYTES = 4095;

export function isSnapshotPath(path: string): boolean {
  if (path === "" || Buffer.byteLength(path) > MAX_PATH_BYTES || !isText(path)) return false;
  const segments = path.split("/");
  return (
    segments.length <= MAX_SEGMENTS &&
    segments.every(
      (name) => name !== "" && name !== "." && name !== ".." && Buffer.byteLength(name) <= MAX_SEGMENT_BYTES,
    ) &&
    path !== SNAPSHOT_NAME
  );
}

/** No NUL, valid Unicode, and no U+FFFD, which stands for bytes that a decoder replaced. */
const isText = (text: string) => text.isWellFormed() && !text.includes("\0") && !text.includes("\ufffd");

/** Whether a symlink at `path` points into the workspace, judged by its text alone. What is at its target does not matter. */
export function staysInside(path: string, target: string): boolean {
  if (target === "" || Buffer.byteLength(target) > MAX_TARGET_BYTES || !isText(target)) return false;
  let steps = target;
  let depth = path.split("/").length - 1;
  if (target.startsWith("/")) {
    if (target !== WORKSPACE && !target.startsWith(`${WORKSPACE}/`)) return false;
    steps = target.slice(WORKSPACE.length);
    depth = 0;
  }
  for (const name of steps.split("/")) {
    if (name === "" || name === ".") continue;
    depth += name === ".." ? -1 : 1;
    if (depth < 0) return false;
  }
  return true;
}

/** Replaces a path in memory while an archive is read: all paths together may be tens of megabytes. */
const keyOf = (path: string) => hash("sha256", path, "base64");

/** Checks the members of an archive one after the other, and throws at one that no valid snapshot has. */
export class MemberRules {
  readonly #kinds = new Map<string, Member["type"]>();
  /** Directories that paths imply. */
  readonly #parents = new Set<string>();

  check(member: Member): void {
    const { path, type } = member;
    if (!isSnapshotPath(path)) throw new DamagedArchive("a path that no workspace has");
    if (this.#kinds.size >= MAX_SNAPSHOT_ENTRIES) throw new DamagedArchive("too many members");
    const key = keyOf(path);
    if (this.#kinds.has(key)) throw new DamagedArchive("a path twice");
    if (type !== "directory" && this.#parents.has(key)) throw new DamagedArchive("a directory that is none");
    this.#enter(path);
    this.#kinds.set(key, type);
    if (type === "symlink" && !staysInside(path, member.target))
      throw new DamagedArchive("a link that leads out");
  }

  #enter(path: string): void {
    for (let slash = path.lastIndexOf("/"); slash !== -1; slash = path.lastIndexOf("/", slash - 1)) {
      const parent = keyOf(path.slice(0, slash));
      if (this.#parents.has(parent)) return;
      if ((this.#kinds.get(parent) ?? "directory") !== "directory")
        throw new DamagedArchive("a path below a file");
      this.#parents.add(parent);
    }
  }
}
