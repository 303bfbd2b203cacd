/** A small file system in memory, for a test to fill. Needs root. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterDeath } from "./after-death.ts";

const PIECE = Buffer.alloc(64 * 1024);
/** What the table of mounts calls it. */
export const TEST_DISK = "svc-test-disk";

/** What used it may need a while to end. */
const UNMOUNT = `
for second in $(seq 60); do umount "$what" && break; sleep 1; done
umount --lazy "$what"
rmdir "$what"
`;

/** It goes with the process that made it, at the latest. */
export class SmallDisk {
  readonly folder: string;
  readonly #isRemoved: () => void;

  /** `options`: of tmpfs. */
  constructor(options: string) {
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-full-")));
    execFileSync("mount", ["-t", "tmpfs", "-o", options, TEST_DISK, this.folder]);
    this.#isRemoved = afterDeath(UNMOUNT, this.folder);
    chmodSync(this.folder, 0o711);
  }

  /** Until no more than so many bytes fit; answers what makes room again. */
  fill(leftBytes = 0): () => void {
    return this.#untilFull((filler) => {
      const file = openSync(filler, "w");
      let written = 0;
      try {
        for (;;) written += writeSync(file, PIECE);
      } finally {
        closeSync(file);
        truncateSync(filler, Math.max(0, written - leftBytes));
      }
    });
  }

  /** Until no more files fit. */
  fillInodes(): () => void {
    return this.#untilFull((filler) => {
      mkdirSync(filler);
      for (let number = 0; ; number++) writeFileSync(join(filler, String(number)), "");
    });
  }

  #untilFull(write: (filler: string) => void): () => void {
    const filler = join(this.folder, "filler");
    try {
      write(filler);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
    return () => rmSync(filler, { recursive: true, force: true });
  }

  remove(): void {
    execFileSync("umount", [this.folder]);
    rmdirSync(this.folder);
    this.#isRemoved();
  }
}
