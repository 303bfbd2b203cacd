/**
 * The saved state of a guest whose runner accepts runs and that has served nobody. Guests resume from it many times faster than they boot. What
 * they share with it and each other is not secret: it never had a key or a caller's program in it. Each guest first gets the time and new random
 * numbers (Guest.ready). The shared memory is sealed; what a guest writes is private to it. The files have no names, so nothing of them is left
 * behind.
 */
import { chownSync, closeSync, existsSync, mkdtempSync, openSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DEVICES, type SavedState, type Saving } from "../monitor/monitor.ts";
import type { Guest } from "./guest.ts";
import { SealedMemory } from "./sealed-memory.ts";
import { warmUp } from "./warm-up.ts";

const SEALED_MEMORY = "sealed-memory";
/** In memory, whatever /tmp is. */
const FOLDER = "/dev/shm";
const OWN = `svc-launcher-${process.pid}-`;
const NAME = /^svc-launcher-(\d+)-/;
/**
 * How far in the past the saved guest's clock is. A guest inherits the state of OpenSSL's random generators, which reseed from the kernel when a
 * day has passed since the last time. When a resumed guest's clock is set to the present, that day has passed.
 */
const BEFORE_MS = 86_400_000;

export interface User {
  uid: number;
  gid: number;
}

export interface SnapshotOptions {
  /** User of the guest that is saved. */
  user: User;
  /** Languages whose programs run in it before it is saved. */
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

  /** Boots a guest, warms it up and saves it. */
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
      // QEMU runs as this user and must reach the socket to which it writes the state.
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

  /** The state for one guest. The caller closes `devices` once the guest's process has inherited it. */
  state(): SavedState {
    // Opened again, because each machine reads the state from its beginning.
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

/** Removes what launchers that were killed during a save left behind. */
function sweep(): void {
  for (const name of readdirSync(FOLDER)) {
    const pid = NAME.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`))
      rmSync(join(FOLDER, name), { recursive: true, force: true });
  }
}
