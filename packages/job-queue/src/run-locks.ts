/**
 * Renews the locks of the jobs that run in this process, by timers. BullMQ would do so by the wall clock: after a clock was set back,
 * it would renew none for that time. A run whose lock was lost is aborted, because another worker may have its job.
 */
import { type CancellableRun, errorText, type Log } from "@svc/service-kit";

/** A worker that does not renew the lock of a job for so long counts as dead. */
export const LOCK_MS = 5000;
const RENEW_MS = 1500;

export class LockLostError extends Error {}

interface LockedRun {
  /** The id of the job. */
  id: string;
  run: CancellableRun;
  /** Resolves with 0 when this run has lost the lock. */
  renew: () => Promise<number>;
}

export class RunLocks {
  readonly #log: Log;
  readonly #queue: string;
  readonly #onRenewed: (jobIds: string[]) => void;
  readonly #runs = new Set<LockedRun>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `onRenewed`: called with the ids of the jobs whose locks were renewed together. */
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

  /** Schedules the next renewal only after the previous one has ended, however long Redis is away. */
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

  /** Whether the run still has its lock. A run that ended meanwhile correctly has none. */
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
