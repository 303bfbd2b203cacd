/**
 * Client of QEMU's protocol QMP: lines of JSON, one answer for each command. A guest that took over QEMU may write to it, so lines are bounded.
 */
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

const MAX_LINE = 64 * 1024;
const ANSWER_MS = 30_000;
const POLL_MS = 20;

const answerSchema = z.union([
  z.object({ return: z.unknown() }),
  z.object({ error: z.object({ class: z.string(), desc: z.string() }) }),
]);
const statusSchema = z.object({ status: z.string() });

export class Qmp {
  readonly #wire: Duplex;
  #rest = "";
  #answered: PromiseWithResolvers<unknown> | undefined;
  /** Why no further command is possible. */
  #over: Error | undefined;

  constructor(wire: Duplex) {
    this.#wire = wire;
    wire.on("data", (bytes: Buffer) => this.#receive(bytes));
    wire.on("error", (error) => this.#end(error));
    wire.on("close", () => this.#end(new Error("QEMU is gone")));
  }

  /** Sends a command and resolves with its answer; rejects with QEMU's error. One command at a time. */
  async command(execute: string, args: object = {}): Promise<unknown> {
    if (this.#over !== undefined) throw this.#over;
    const answered = Promise.withResolvers<unknown>();
    this.#answered = answered;
    const timer = setTimeout(() => this.#fail(new Error(`QEMU does not answer ${execute}`)), ANSWER_MS);
    this.#wire.write(`${JSON.stringify({ execute, arguments: args })}\n`);
    try {
      return await answered.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Polls a status until it is none of `passing`, and resolves with it. */
  async until(execute: string, passing: readonly string[]): Promise<string> {
    for (const end = performance.now() + ANSWER_MS; performance.now() < end; await sleep(POLL_MS)) {
      const { status } = statusSchema.parse(await this.command(execute));
      if (!passing.includes(status)) return status;
    }
    throw new Error(`QEMU stays as it is: ${execute}`);
  }

  close(): void {
    this.#wire.destroy();
  }

  #receive(bytes: Buffer): void {
    const lines = (this.#rest + bytes.toString("latin1")).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > MAX_LINE) this.#wire.destroy(new Error("a line of QEMU is too long"));
    for (const line of lines) this.#take(line);
  }

  /** Takes a line. Greetings and events are not answers, so it ignores them. */
  #take(line: string): void {
    const answer = answerSchema.safeParse(parsed(line)).data;
    if (answer === undefined) return;
    if ("error" in answer) this.#fail(new Error(`QEMU: ${answer.error.class}: ${answer.error.desc}`));
    else this.#answered?.resolve(answer.return);
  }

  #end(error: Error): void {
    this.#over ??= error;
    this.#fail(this.#over);
  }

  #fail(error: Error): void {
    this.#answered?.reject(error);
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
