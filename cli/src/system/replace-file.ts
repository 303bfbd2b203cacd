/** Replaces a file atomically: a reader sees either the old or the new content. The folder must not be writable by other users. */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

export interface Ownership {
  mode: number;
  uid?: number | undefined;
  gid?: number | undefined;
}

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

export function replaceFile(path: string, content: string | Buffer, { mode, uid, gid }: Ownership): void {
  // The name begins with a dot, because readers of a folder of keys skip such files.
  const fresh = join(dirname(path), `.${basename(path)}.new`);
  rmSync(fresh, { force: true });
  const file = openSync(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeFileSync(file, content);
    if (uid !== undefined && gid !== undefined) fchownSync(file, uid, gid);
    fchmodSync(file, mode);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(fresh, path);
}
