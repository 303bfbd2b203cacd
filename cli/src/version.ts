/** Version and commit of this tree. Reads the commit from .git directly, because git refuses a tree that belongs to another user. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ROOT } from "./instance.ts";

export interface Version {
  version: string;
  /** Absent when the tree is not a clone. */
  commit?: string;
}

export function versionOf(root = ROOT): Version {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const commit = commitOf(root)?.slice(0, COMMIT_DIGITS);
  return { version, ...(commit === undefined ? {} : { commit }) };
}

const COMMIT_DIGITS = 12;

export function versionText({ version, commit }: Version): string {
  return commit === undefined ? version : `${version} (commit ${commit})`;
}

function commitOf(root: string): string | undefined {
  const git = gitFolder(root);
  const head = read(join(git, "HEAD")) ?? "";
  const [, ref] = /^ref: (refs\/\S+)$/.exec(head) ?? [];
  const found = ref === undefined ? head : refIn(git, ref);
  return found !== undefined && /^[0-9a-f]{40,64}$/.test(found) ? found : undefined;
}

/** In a worktree, `.git` is a file that names the git folder. */
function gitFolder(root: string): string {
  const path = join(root, ".git");
  const [, elsewhere] = /^gitdir: (.+)$/.exec(read(path) ?? "") ?? [];
  return elsewhere === undefined ? path : resolve(root, elsewhere);
}

/** A worktree shares the refs of its repository. */
function refIn(git: string, ref: string): string | undefined {
  const shared = resolve(git, read(join(git, "commondir")) ?? ".");
  const packed = () =>
    read(join(shared, "packed-refs"))
      ?.split("\n")
      .find((line) => line.endsWith(` ${ref}`))
      ?.split(" ")[0];
  return read(join(git, ref)) ?? read(join(shared, ref)) ?? packed();
}

function read(path: string): string | undefined {
  try {
    return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
  } catch {
    return undefined;
  }
}
