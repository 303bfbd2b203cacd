/**
 * Reads the lines that are appended to a log file, across rotations. Lines written between the last read and a rotation come
 * from the rotated file.
 */
import { statSync } from "node:fs";
import { bytesFrom, fileSize, readFrom } from "../supervisor/logs.ts";
import { rotatedPath } from "../supervisor/rotation.ts";

const MAX_ATTEMPTS = 3;
const NEWLINE = 10;

export class LogFollower {
  readonly #path: string;
  #offset: number;
  /** The newest rotated file at the last read. */
  #rotated: string | undefined;
  #wasShort = false;

  /** Follows from the present end of the file on. */
  constructor(path: string) {
    this.#path = path;
    this.#offset = fileSize(path);
    this.#rotated = this.#identityOf(1);
  }

  /** Where the next read begins. */
  get offset(): number {
    return this.#offset;
  }

  /** The complete lines that were appended since the last read. */
  read(): string[] {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const rotated = this.#identityOf(1);
      const missed = this.#missedFiles(rotated);
      if (missed === undefined) return [];
      const offset = missed.length > 0 ? 0 : this.#offset;
      if (missed.length === 0 && this.#isShort()) return [];
      const earlier = missed.map((path, at) => readFrom(path, at === 0 ? this.#offset : 0));
      const bytes = bytesFrom(this.#path, this.#wasShort ? 0 : offset);
      // The file was rotated just now, so the bytes may come from either file.
      if (this.#identityOf(1) !== rotated) continue;
      const whole = bytes.subarray(0, bytes.lastIndexOf(NEWLINE) + 1);
      this.#offset = (this.#wasShort ? 0 : offset) + whole.length;
      this.#wasShort = false;
      this.#rotated = rotated;
      return [...earlier, whole.toString("utf8")].join("").split("\n").filter(Boolean);
    }
    return [];
  }

  /** Rotated files that have not been read to their end, oldest first; undefined in the middle of a rotation. */
  #missedFiles(rotated: string | undefined): string[] | undefined {
    if (rotated === this.#rotated) return [];
    if (rotated === undefined) return undefined;
    const missed: string[] = [];
    for (let n = 1; ; n++) {
      const identity = this.#identityOf(n);
      if (identity === undefined || identity === this.#rotated) return missed;
      missed.unshift(rotatedPath(this.#path, n));
    }
  }

  /**
   * True once when the file has become shorter: a rotation may be in progress. If it still is at the next read, somebody
   * emptied it by hand.
   */
  #isShort(): boolean {
    const isShort = fileSize(this.#path) < this.#offset;
    const isNew = isShort && !this.#wasShort;
    this.#wasShort = isShort;
    return isNew;
  }

  /** Stays the same when the file is renamed. */
  #identityOf(n: number): string | undefined {
    const stat = statSync(rotatedPath(this.#path, n), { throwIfNoEntry: false });
    return stat && `${stat.ino} ${stat.mtimeMs} ${stat.size}`;
  }
}
