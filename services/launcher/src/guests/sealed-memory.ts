/** Memory of a saved guest, which the guests that resume from it share (guest/sealed-memory.c). */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { createInterface } from "node:readline/promises";

export class SealedMemory {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  /** Open for reading and writing; a process that inherits it may map it. */
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
    // Prevents an unhandled rejection; whoever awaits it still gets the error.
    ended.catch(() => undefined);
    const line = once(createInterface({ input: child.stdout }), "line");
    const [number] = (await Promise.race([line, ended])) as unknown[];
    if (typeof number !== "string") throw new Error(`${program} ended: ${number}`);
    return new SealedMemory(child, ended, openSync(`/proc/${child.pid}/fd/${number}`, "r+"));
  }

  /** Seals the memory: nobody can change it any more. Rejects while a process that could change it has it mapped. */
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
