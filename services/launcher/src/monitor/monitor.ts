/** What the launcher asks of the program that runs virtual machines; ./qemu.ts is one. */
import type { Duplex } from "node:stream";

/** Descriptors of what a machine goes on from. */
export interface SavedState {
  /** The memory that was saved, which others go on from at the same time: what the machine changes is its own. */
  memory: number;
  /** The state of its devices and processors, as `save` wrote it. */
  devices: number;
}

/** Where a machine can be saved. */
export interface Saving {
  /** Descriptor of a file that its user may open and write, which becomes its memory. */
  memory: number;
  /** Of the machine's user; the state of its devices is written to the file DEVICES in it. */
  folder: string;
}

export const DEVICES = "devices";

export interface MachineSpec {
  /** Folder that guest/build has made. */
  image: string;
  /** Each block of the root image is checked as the machine reads it (dm-verity). */
  verified: boolean;
  ramMib: number;
  vcpus: number;
  /** Of the kernel's messages on the console, 0 to 5. */
  logLevel: number;
  /** Whose the machine's process is; undefined: its starter's. */
  user: { uid: number; gid: number } | undefined;
  /** Its control group. */
  group?: { add: (pid: number) => void };
  /** For `save`. */
  saving?: Saving;
  /** Absent: it boots. */
  from?: SavedState;
  /** Told of each line of the console. The guest wrote it: it is not to be believed. */
  onConsole: (line: string) => void;
}

/** Byte streams to a guest. */
export interface Wires {
  requests: Duplex;
  gateway: Duplex;
  /** To its first program. */
  control: Duplex;
}

export interface Machine {
  connect(): Wires;
  /** Resolves when its processors run, which takes a moment where it goes on from a saved state. */
  readonly running: Promise<void>;
  /**
   * Stops it for good, and writes what a machine like it can go on from, as `saving` says. Its process is gone afterwards.
   */
  save(): Promise<void>;
  /** It computes nothing until `resume`, and keeps its memory. */
  pause(): void;
  resume(): void;
  /** Resolves when its process is gone and its memory with it. */
  end(): Promise<void>;
  /** Why it is gone. Never rejects. */
  readonly ended: Promise<string>;
  readonly pid: number;
}

export interface Monitor {
  boot(spec: MachineSpec): Machine;
}
