/**
 * A pool of connections only for changes of ledger records. It opens them on demand, up to a limit. After a failed command it
 * closes the connection, so that a command in flight there is not sent again.
 */

import { Semaphore, type SemaphoreOptions } from "@svc/service-kit/semaphore";
import type { Redis } from "ioredis";

export class Connections<R extends Pick<Redis, "disconnect">> {
  readonly #open: () => R;
  readonly #semaphore: Semaphore;
  readonly #all = new Set<R>();
  readonly #free: R[] = [];

  constructor(open: () => R, limits: SemaphoreOptions) {
    this.#open = open;
    this.#semaphore = new Semaphore(limits);
  }

  get size(): number {
    return this.#all.size;
  }

  use<T>(work: (connection: R) => Promise<T>): Promise<T> {
    return this.#semaphore.run(async () => {
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
