/**
 * A mount namespace in which the users of the components can reach what they need below folders that are closed to them, such
 * as /root. Each closed folder is covered by an empty file system that contains only those paths. Outside the namespace
 * nothing is mounted and no mode changes. The namespace ends with its last process.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, rmdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import { Problem } from "../problem.ts";

export interface View {
  /** Words that run the command after them in the view. Empty when no folder is closed. */
  enter: readonly string[];
  close: () => void;
}

/** The permission that other users need to pass through a folder. */
const PASS = 0o001;

/** The topmost closed folder above each path, with the paths that are needed below it. */
export function closedFolders(
  needed: readonly string[],
  isOpen: (folder: string) => boolean,
): Map<string, string[]> {
  const closed = new Map<string, string[]>();
  for (const path of needed) {
    const top = parentsOf(path).find((folder) => !isOpen(folder));
    if (top !== undefined) closed.set(top, [...(closed.get(top) ?? []), path]);
  }
  return closed;
}

/** Outermost first. */
function parentsOf(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [...parentsOf(parent), parent];
}

export function isOpenToOthers(folder: string): boolean {
  return ((statSync(folder, { throwIfNoEntry: false })?.mode ?? PASS) & PASS) !== 0;
}

/** Arguments: an empty folder; then for each closed folder its path, the number of needed paths, and these paths. */
const MAKE = `
set -eu
umask 022
stage=$1
shift
while [ $# -gt 0 ]; do
  closed=$1 count=$2
  shift 2
  mount -t tmpfs -o mode=755,nosuid,nodev,size=1m svc "$stage"
  while [ "$count" -gt 0 ]; do
    place=$stage\${1#"$closed"}
    if [ -d "$1" ]; then mkdir -p "$place"; else mkdir -p "\${place%/*}"; [ -e "$place" ] || : > "$place"; fi
    mount --rbind "$1" "$place"
    shift
    count=$((count - 1))
  done
  mount -o remount,ro "$stage"
  mount --move "$stage" "$closed"
done
echo made
read -r _ || true
`;

/** `needed`: folders and files without links in their paths. `stage`: a path where a folder may be made for a moment. */
export async function openView(needed: readonly string[], stage: string): Promise<View> {
  const closed = closedFolders(needed, isOpenToOthers);
  if (closed.size === 0) return { enter: [], close: () => undefined };
  mkdirSync(stage, { recursive: true });
  const list = [...closed].flatMap(([folder, paths]) => [folder, String(paths.length), ...paths]);
  const maker = spawn(
    "/usr/bin/unshare",
    ["--mount", "--propagation", "slave", "/bin/sh", "-c", MAKE, "sh", stage, ...list],
    { stdio: ["pipe", "pipe", "pipe"] },
  );
  const said = text(maker.stderr);
  const gone = once(maker, "close");
  try {
    await Promise.race([once(maker.stdout, "data"), gone]);
    if (maker.exitCode !== null) {
      throw new Problem("the components cannot be let into closed folders", (await said).trim());
    }
    const namespace = openSync(`/proc/${maker.pid}/ns/mnt`, "r");
    return {
      enter: ["/usr/bin/nsenter", `--mount=/proc/${process.pid}/fd/${namespace}`, "--"],
      close: () => closeSync(namespace),
    };
  } finally {
    maker.stdin.end();
    await gone;
    rmdirSync(stage);
  }
}
