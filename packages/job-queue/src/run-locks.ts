/**
 * Renews the locks of the jobs that run in this process, by timers: BullMQ does so by the time of day, and renews none for as long as a
 * clock was set back. A run whose lock was lost is aborted: another worker may have its job.
 */
import { type CancellableRun, errorText, type Log } from "@svc/service-kit";

/** A worker that does not renew the lock of a job for so long counts as dead. */
export const LOCK_MS = 5000;
const RENEW_MS = 1500;

export class LockLostError extends Error {}

interface LockedRun {
  /** Of its job. */
  id: string;
  run: CancellableRun;
  /** 0: the lock is not this run's any more. */
  renew: () => Promise<number>;
}

export class RunLocks {
  readonly #log: Log;
  readonly #queue: string;
  readonly #onRenewed: (jobIds: string[]) => void;
  readonly #runs = new Set<LockedRun>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `onRenewed`: told of the jobs whose locks were renewed together. */
  constructor(log: Log, queue: string, onRenewed: (jobIds: string[]) => void) {
    this.#log = log;
    this.#queue = queue;
    this.#onRenewed = onRenewed;
    this.#schedule();
  }

  /** The returned function ends the renewals. */
  add(run: LockedRun): () => void {
    this.#runs.add(run);
    return () => this.#runs.delete(run);
  }

  /** The next renewal follows on the one before, however long a store is away. */
  #schedule(): void {
    this.#timer = setTimeout(async () => {
      await this.#renewAll();
      if (!this.#isClosed) this.#schedule();
    }, RENEW_MS);
  }

  async #renewAll(): Promise<void> {
    const locked = [...this.#runs];
    const renewed = await Promise.all(locked.map((run) => this.#renew(run)));
    const ids = locked.filter((_, at) => renewed[at]).map(({ id }) => id);
    if (ids.length > 0) this.#onRenewed(ids);
  }

  /** Whether the run has its lock. One that ended meanwhile has none, as it should be. */
  async #renew(locked: LockedRun): Promise<boolean> {
    const { id, run, renew } = locked;
    try {
      if ((await renew()) === 1) return true;
      if (!this.#runs.delete(locked)) return false;
      run.abort(new LockLostError("the lock of the job was lost"));
      this.#log.warn({ job: id, queue: this.#queue }, "lock renewal failed; the job was aborted");
    } catch (error) {
      this.#log.warn({ err: errorText(error), queue: this.#queue }, "queue error");
    }
    return false;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
