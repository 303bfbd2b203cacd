/**
 * Bounds uploads, and answers that are streams of the file server, of one principal and of all together: each holds a connection to the
 * file server for as long as its client takes to send or to read, and the other requests need some, too.
 */
import { ServiceError } from "@svc/contracts";
import { Semaphore } from "@svc/service-kit";
import { OpenByCaller } from "./open-by-caller.ts";
import { transfersAreOpen } from "./window.ts";

/** Of the 256 connections to the file server. */
const OF_ALL = 192;
const OF_A_CALLER = 16;
const WAIT_MS = 30_000;
const WAITING_OF_A_CALLER = 100;

export class OpenTransfers {
  readonly #ofCallers = new OpenByCaller({
    atOnce: OF_A_CALLER,
    waiting: { length: WAITING_OF_A_CALLER, waitMs: WAIT_MS, refusal: () => transfersAreOpen(OF_A_CALLER) },
  });
  readonly #ofAll = new Semaphore({
    units: OF_ALL,
    queue: { length: Number.POSITIVE_INFINITY, waitMs: WAIT_MS, refusal: tooManyOfAll },
  });

  /** Waits for a place, which is held until the answer's connection has closed. */
  async enter(caller: string, closed: Promise<void>): Promise<void> {
    await this.#ofCallers.enter(caller, closed);
    await new Promise<void>((resolve, reject) => {
      const open = () => {
        resolve();
        return closed;
      };
      this.#ofAll.run(open, 1, closed).catch(reject);
    });
  }
}

const tooManyOfAll = () =>
  new ServiceError(
    "storage_unavailable",
    "Too many uploads and downloads of all callers are open; ask again later.",
  );
