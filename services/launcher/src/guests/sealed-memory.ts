/** Memory for a guest that is saved, and shared by those that go on from it (guest/sealed-memory.c). */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { createInterface } from "node:readline/promises";

export class SealedMemory {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  /** Open for reading and writing; a process that is given it may map it. */
  readonly descriptor: number;

  private constructor(child: ChildProcess, ended: Promise<unknown[]>, descriptor: number) {
    this.#child = child;
    this.#ended = ended;
    this.descriptor = descriptor;
  }

  /** `program`: what guest/build made of guest/sealed-memory.c. */
  static async open(program: string): Promise<SealedMemory> {
    const child = spawn(program, { env: {}, stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(child, "close");
    // Who waits for it is told.
    ended.catch(() => undefined);
    const line = once(createInterface({ input: child.stdout }), "line");
    const [number] = (await Promise.race([line, ended])) as unknown[];
    if (typeof number !== "string") throw new Error(`${program} ended: ${number}`);
    return new SealedMemory(child, ended, openSync(`/proc/${child.pid}/fd/${number}`, "r+"));
  }

  /** Nobody can change it any more. Rejects while it is mapped by somebody who could. */
  async seal(): Promise<void> {
    this.#child.stdin?.end();
    const [code] = await this.#ended;
    if (code !== 0) throw new Error("the memory of a microVM could not be sealed");
  }

  close(): void {
    this.#child.stdin?.end();
    closeSync(this.descriptor);
  }
}
