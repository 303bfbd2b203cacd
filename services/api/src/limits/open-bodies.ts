/**
 * Bounds the bodies of a principal that this process reads at once, where only the body tells what a request is: until then
 * it takes no seat, and must not hold memory without bound meanwhile. Further bodies wait unread; only a principal whose
 * bodies do not end, or with very many requests, is refused.
 */
import type { ServiceError } from "@svc/contracts";
import { Semaphore } from "@svc/service-kit";

export interface OpenBodiesOptions {
  /** Bodies of one principal that are read at the same time. */
  atOnce: number;
  waiting: { length: number; waitMs: number; refusal: () => ServiceError };
}

interface Line {
  semaphore: Semaphore;
  requests: number;
}

export class OpenBodies {
  readonly #options: OpenBodiesOptions;
  readonly #lines = new Map<string, Line>();

  constructor(options: OpenBodiesOptions) {
    this.#options = options;
  }

  /** Waits until the body may be read. Returns what is called once it has been; `closed` stands for that, too. */
  enter(caller: string, closed: Promise<void>): Promise<() => void> {
    const { atOnce, waiting } = this.#options;
    const line = this.#lines.get(caller) ?? {
      semaphore: new Semaphore({ units: atOnce, queue: waiting }),
      requests: 0,
    };
    this.#lines.set(caller, line);
    line.requests++;
    return new Promise((resolve, reject) => {
      const read = () =>
        new Promise<void>((leave) => {
          void closed.then(leave);
          resolve(leave);
        });
      line.semaphore
        .run(read)
        .catch(reject)
        .finally(() => {
          if (--line.requests === 0) this.#lines.delete(caller);
        });
    });
  }
}
