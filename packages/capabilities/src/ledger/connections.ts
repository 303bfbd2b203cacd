/**
 * The connections that change ledger records, and nothing else: opened when they are first needed, up to a limit. One on
 * which a command failed is closed, so that a command that is still on its way through it is not sent again.
 */
import type { Redis } from "ioredis";
import { type LineLimits, WaitingLine } from "./waiting-line.ts";

export class Connections<R extends Pick<Redis, "disconnect">> {
  readonly #open: () => R;
  readonly #line: WaitingLine;
  readonly #all = new Set<R>();
  readonly #free: R[] = [];

  constructor(open: () => R, limits: LineLimits) {
    this.#open = open;
    this.#line = new WaitingLine(limits);
  }

  get size(): number {
    return this.#all.size;
  }

  use<T>(work: (connection: R) => Promise<T>): Promise<T> {
    return this.#line.run(async () => {
      const connection = this.#free.pop() ?? this.#open();
      this.#all.add(connection);
      try {
        const result = await work(connection);
        this.#free.push(connection);
        return result;
      } catch (error) {
        this.#all.delete(connection);
        connection.disconnect();
        throw error;
      }
    });
  }

  close(): void {
    for (const connection of this.#all) connection.disconnect();
    this.#all.clear();
    this.#free.length = 0;
  }
}
