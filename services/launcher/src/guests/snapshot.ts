/**
 * A guest whose runner takes runs and has served nobody, as guests go on from it: many times faster than they boot. What they share with
 * it and each other is no secret: neither a key nor a program of anybody has been in it. Each gets the time and new random numbers before
 * anything else (Guest.update), and its memory is a copy of its own. The files have no names, so nothing is left of them.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  chownSync,
  closeSync,
  existsSync,
  fchownSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  unlinkSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { DEVICES, type SavedState, type Saving } from "../monitor/monitor.ts";
import type { Guest } from "./guest.ts";
import { warmUp } from "./warm-up.ts";

const run = promisify(execFile);

/** Memory, whatever /tmp is. */
const FOLDER = "/dev/shm";
const OWN = `svc-launcher-${process.pid}-`;
const NAME = /^svc-launcher-(\d+)-/;
/**
 * The time of the guest that is saved. OpenSSL's generators of random numbers, which a guest has inherited, take new ones of the kernel
 * when a day has passed since they last did.
 */
const BEFORE_MS = 86_400_000;

export interface User {
  uid: number;
  gid: number;
}

export class Snapshot {
  readonly #memory: number;
  readonly #devices: number;
  readonly lastStream: number;

  private constructor(memory: number, devices: number, lastStream: number) {
    this.#memory = memory;
    this.#devices = devices;
    this.lastStream = lastStream;
  }

  /** Boots a guest for it, which runs programs of `languages` first. */
  static async take(
    user: User,
    languages: readonly string[],
    boot: (saving: Saving) => Guest,
  ): Promise<Snapshot> {
    sweep();
    const folder = mkdtempSync(join(FOLDER, OWN));
    const memory = nameless(user);
    try {
      // Its user looks up the socket that its state is written to.
      chownSync(folder, user.uid, user.gid);
      const guest = boot({ memory, folder });
      try {
        await guest.ready(Date.now() - BEFORE_MS);
        await warmUp(guest, languages);
        const lastStream = await guest.save();
        return new Snapshot(memory, openSync(join(folder, DEVICES), "r"), lastStream);
      } finally {
        await guest.end();
      }
    } catch (error) {
      closeSync(memory);
      throw error;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  /** For one guest, whose user alone may use the copy. Its descriptors are to be closed once its process has them. */
  async copyFor(user: User): Promise<SavedState> {
    const memory = nameless(user);
    try {
      const [from, to] = [this.#memory, memory].map((number) => `/proc/${process.pid}/fd/${number}`);
      await run("/bin/cp", ["--", from ?? "", to ?? ""]);
      // Each machine reads from its beginning.
      return { memory, devices: openSync(`/proc/self/fd/${this.#devices}`, "r") };
    } catch (error) {
      closeSync(memory);
      throw error;
    }
  }

  close(): void {
    closeSync(this.#memory);
    closeSync(this.#devices);
  }
}

/** Removes what launchers that were killed in the midst of it have left. */
function sweep(): void {
  for (const name of readdirSync(FOLDER)) {
    const pid = NAME.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`))
      rmSync(join(FOLDER, name), { recursive: true, force: true });
  }
}

/** A file in memory that is gone with its last descriptor. */
function nameless({ uid, gid }: User): number {
  const path = join(FOLDER, `${OWN}${randomUUID()}`);
  const file = openSync(path, "wx+", 0o600);
  unlinkSync(path);
  fchownSync(file, uid, gid);
  return file;
}
