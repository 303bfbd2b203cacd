/** Small file systems in memory that can be filled and freed. Needs root. */
import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

const PIECE = Buffer.alloc(64 * 1024);
const FILLER = ".filler";

export class SmallDisk {
  readonly folder: string;

  constructor(folder: string, megabytes: number) {
    this.folder = folder;
    mkdirSync(folder);
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0711`, "svc-test-disk", folder]);
  }

  /** Until nothing more can be written. What is returned frees it. */
  fill(): () => void {
    const path = join(this.folder, FILLER);
    const file = openSync(path, "a");
    try {
      for (;;) writeSync(file, PIECE);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    } finally {
      closeSync(file);
    }
    return () => rmSync(path, { force: true });
  }

  remove(): void {
    execFileSync("umount", ["--lazy", this.folder]);
  }
}
