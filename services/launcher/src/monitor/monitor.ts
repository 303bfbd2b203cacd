/** The launcher's interface to the program that runs virtual machines; ./qemu.ts implements it. */
import type { Duplex } from "node:stream";

/** Descriptors of the saved state from which a machine resumes. */
export interface SavedState {
  /** The saved memory, from which several machines may resume at once. What a machine writes stays private to it. */
  memory: number;
  /** The state of its devices and processors, as `save` wrote it. */
  devices: number;
}

/** Where the state of a machine is saved. */
export interface Saving {
  /** Descriptor of the file that becomes the machine's memory. The machine's user may open and write it. */
  memory: number;
  /** A folder of the machine's user. The state of the devices is written to the file DEVICES in it. */
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
  /** Level of the kernel's messages on the console, 0 to 5. */
  logLevel: number;
  /** User of the machine's process. Undefined: the user of the process that starts it. */
  user: { uid: number; gid: number } | undefined;
  /** Its control group. */
  group?: { add: (pid: number) => void };
  /** Needed for `save`. */
  saving?: Saving;
  /** State from which the machine resumes. Absent: it boots. */
  from?: SavedState;
  /** Called with each line of the console. The guest wrote it, so it is not trusted. */
  onConsole: (line: string) => void;
}

/** Byte streams to a guest. */
export interface Wires {
  requests: Duplex;
  gateway: Duplex;
  /** To the guest's first program (channel/control.ts). */
  control: Duplex;
}

export interface Machine {
  connect(): Wires;
  /** Resolves when the machine's processors run. After a resume from a saved state this takes a moment. */
  readonly running: Promise<void>;
  /**
   * Stops the machine for good and saves its state as `saving` says, so that machines like it can resume from it. Its process is gone afterwards.
   */
  save(): Promise<void>;
  /** Stops the machine until `resume`; it keeps its memory. */
  pause(): void;
  resume(): void;
  /** Kills the machine. Resolves when its process is gone, and its memory with it. */
  end(): Promise<void>;
  /** Resolves with the reason when the process is gone. Never rejects. */
  readonly ended: Promise<string>;
  readonly pid: number;
}

export interface Monitor {
  boot(spec: MachineSpec): Machine;
}
