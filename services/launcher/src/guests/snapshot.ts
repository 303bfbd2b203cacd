/**
 * A guest whose runner takes runs and has served nobody, as guests go on from it: many times faster than they boot. What they share with
 * it and each other is no secret: neither a key nor a program of anybody has been in it. Each gets the time and new random numbers before
 * anything else (Guest.update). They share its memory, which is sealed; what one writes is its own. The files have no names, so nothing is
 * left of them.
 */
import { chownSync, closeSync, existsSync, mkdtempSync, openSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DEVICES, type SavedState, type Saving } from "../monitor/monitor.ts";
import type { Guest } from "./guest.ts";
import { SealedMemory } from "./sealed-memory.ts";
import { warmUp } from "./warm-up.ts";

const SEALED_MEMORY = "sealed-memory";
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

export interface SnapshotOptions {
  /** Of the guest that is saved. */
  user: User;
  /** Programs of these are run in it first. */
  languages: readonly string[];
  /** Folder that guest/build has made. */
  image: string;
  boot: (saving: Saving) => Guest;
}

export class Snapshot {
  readonly #memory: SealedMemory;
  readonly #devices: number;
  readonly lastStream: number;

  private constructor(memory: SealedMemory, devices: number, lastStream: number) {
    this.#memory = memory;
    this.#devices = devices;
    this.lastStream = lastStream;
  }

  /** Boots a guest for it. */
  static async take(options: SnapshotOptions): Promise<Snapshot> {
    sweep();
    const memory = await SealedMemory.open(join(options.image, SEALED_MEMORY));
    try {
      return await Snapshot.#save(memory, options);
    } catch (error) {
      memory.close();
      throw error;
    }
  }

  static async #save(memory: SealedMemory, { user, languages, boot }: SnapshotOptions): Promise<Snapshot> {
    const folder = mkdtempSync(join(FOLDER, OWN));
    try {
      // Its user looks up the socket that its state is written to.
      chownSync(folder, user.uid, user.gid);
      const guest = boot({ memory: memory.descriptor, folder });
      try {
        await guest.ready(Date.now() - BEFORE_MS);
        await warmUp(guest, languages);
        const lastStream = await guest.save();
        await memory.seal();
        return new Snapshot(memory, openSync(join(folder, DEVICES), "r"), lastStream);
      } finally {
        await guest.end();
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  /** For one guest. `devices` is to be closed once its process has it. */
  state(): SavedState {
    // Each machine reads it from its beginning.
    return {
      memory: this.#memory.descriptor,
      devices: openSync(`/proc/self/fd/${this.#devices}`, "r"),
    };
  }

  close(): void {
    this.#memory.close();
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
