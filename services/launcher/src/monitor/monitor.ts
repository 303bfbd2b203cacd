/** What the launcher asks of the program that runs virtual machines; ./qemu.ts is one. */
import type { Duplex } from "node:stream";

export interface MachineSpec {
  /** Folder that guest/build has made. */
  image: string;
  ramMib: number;
  vcpus: number;
  /** Of the kernel's messages on the console, 0 to 5. */
  logLevel: number;
  /** Whose the machine's process is; undefined: its starter's. */
  user: { uid: number; gid: number } | undefined;
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
