/** Servers with one common queue, first come first served: Redis is a station with a single server. */
import type { Clock } from "./clock.ts";

export class Station {
  readonly #clock: Clock;
  readonly #servers: number;
  #line: { ms: number; done: () => void }[] = [];
  /** Start of the waiting part of the line: everything before it has been served. */
  #first = 0;
  #serving = 0;
  #busyMs = 0;

  constructor(clock: Clock, servers: number) {
    this.#clock = clock;
    this.#servers = servers;
  }

  /** Server milliseconds of the work that ended. */
  get busyMs(): number {
    return this.#busyMs;
  }

  get jobs(): number {
    return this.#serving + this.#line.length - this.#first;
  }

  use(ms: number, done: () => void): void {
    this.#line.push({ ms, done });
    this.#serve();
  }

  #serve(): void {
    while (this.#serving < this.#servers && this.#first < this.#line.length) {
      const { ms, done } = this.#line[this.#first++] as { ms: number; done: () => void };
      if (this.#first > 1024) {
        this.#line = this.#line.slice(this.#first);
        this.#first = 0;
      }
      this.#serving++;
      this.#clock.after(ms, () => {
        this.#serving--;
        this.#busyMs += ms;
        this.#serve();
        done();
      });
    }
  }
}
