/** Writes a file whole: a reader sees the old content or the new one. The folder is not writable for others. */
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
  // A name that begins with a dot is not a key to who reads the folder.
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
