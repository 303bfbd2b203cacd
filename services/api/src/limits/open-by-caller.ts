/**
 * Bounds how many requests of each principal are open in this process at once. Further requests wait in a queue. They are refused only
 * when the queue is full or the wait takes too long.
 */
import type { ServiceError } from "@svc/contracts";
import { Semaphore } from "@svc/service-kit";

export interface OpenByCallerOptions {
  /** Open requests of one principal. */
  atOnce: number;
  waiting: { length: number; waitMs: number; refusal: () => ServiceError };
}

interface Line {
  semaphore: Semaphore;
  requests: number;
}

export class OpenByCaller {
  readonly #options: OpenByCallerOptions;
  readonly #lines = new Map<string, Line>();

  constructor(options: OpenByCallerOptions) {
    this.#options = options;
  }

  /** Waits for a unit of the caller's semaphore; rejects if `closed` settles first. The returned function and `closed` release the unit. */
  enter(caller: string, closed: Promise<void>): Promise<() => void> {
    const { atOnce, waiting } = this.#options;
    const line = this.#lines.get(caller) ?? {
      semaphore: new Semaphore({ units: atOnce, queue: waiting }),
      requests: 0,
    };
    this.#lines.set(caller, line);
    line.requests++;
    return new Promise((resolve, reject) => {
      const open = () =>
        new Promise<void>((leave) => {
          void closed.then(leave);
          resolve(leave);
        });
      line.semaphore
        .run(open, 1, closed)
        .catch(reject)
        .finally(() => {
          if (--line.requests === 0) this.#lines.delete(caller);
        });
    });
  }
}
