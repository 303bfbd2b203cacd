/**
 * Bounds uploads, and answers that stream from the file server, for each principal and for all together. Each holds a connection to the
 * file server for as long as its client sends or reads. Other requests need connections, too.
 */
import { ServiceError } from "@svc/contracts";
import { INNER_CONNECTIONS, Semaphore } from "@svc/service-kit";
import { OpenByCaller } from "./open-by-caller.ts";
import { transfersAreOpen } from "./window.ts";

/** For all callers together. The other connections to the file server are left to other requests. */
const OF_ALL = INNER_CONNECTIONS - 64;
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

  /** Waits for a unit of both semaphores. They are held until `closed` settles. */
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
