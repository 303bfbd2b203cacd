/**
 * What a program sees of its tools: a directory on the host, one per slot, which the jail shows read-only. jaild creates and empties the
 * directories. The runner adds the socket and the files of one run, and removes them before the slot is given back. A slot has one owner: a claim
 * first releases what an earlier run may have left.
 */
import { rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { ServiceError } from "@svc/contracts";

/** Nothing in it is secret: the program may read all of it. */
const FILE_MODE = 0o444;

export class ToolDirectories {
  readonly #base: string;
  readonly #socketName: string;
  readonly #owners = new Map<number, ToolDirectory>();

  /** `toolSocket`: its path as programs see it. */
  constructor(base: string, toolSocket: string) {
    this.#base = base;
    this.#socketName = basename(toolSocket);
  }

  /** Throws `sandbox_setup_failed` when a file cannot be written, as on a full disk; then no file stays. */
  claim(slot: number, files: Readonly<Record<string, string>>): ToolDirectory {
    this.#owners.get(slot)?.release();
    const directory = join(this.#base, String(slot));
    const owner = new ToolDirectory(directory, this.#socketName, Object.keys(files), () => {
      if (this.#owners.get(slot) === owner) this.#owners.delete(slot);
    });
    this.#owners.set(slot, owner);
    try {
      for (const [name, content] of Object.entries(files)) {
        writeFileSync(join(directory, name), content, { mode: FILE_MODE, flag: "wx" });
      }
    } catch (cause) {
      owner.release();
      throw new ServiceError("sandbox_setup_failed", undefined, { cause });
    }
    return owner;
  }
}

export class ToolDirectory {
  readonly socketPath: string;
  readonly #paths: readonly string[];
  readonly #done: () => void;
  /** Called before the files are removed. */
  onRelease: () => void = () => undefined;
  #released = false;

  constructor(directory: string, socketName: string, files: readonly string[], done: () => void) {
    this.socketPath = join(directory, socketName);
    this.#paths = [...files.map((name) => join(directory, name)), this.socketPath];
    this.#done = done;
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.onRelease();
    for (const path of this.#paths) {
      try {
        rmSync(path, { force: true });
      } catch {
        // The next claim finds the file and is refused.
      }
    }
    this.#done();
  }
}
