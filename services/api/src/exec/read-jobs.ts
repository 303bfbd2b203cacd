/**
 * Takes jobs out of their queues when their answers have been read: nobody looks at them again, and program and output of
 * each would fill the store for as long as an answer that was lost must be found. They go in batches, off the path of
 * requests, and late enough that the worker has ended them. One that cannot be removed lapses like the others.
 */
import type { Queue } from "bullmq";

const BATCH_MS = 1000;

export class ReadJobs {
  readonly #timer: NodeJS.Timeout;
  /** Those of the batch before, which go next, and of the one that is being filled. */
  #ended: [Queue, string][] = [];
  #read: [Queue, string][] = [];

  constructor(batchMs = BATCH_MS) {
    this.#timer = setInterval(() => void this.#remove(), batchMs).unref();
  }

  add(queue: Queue, id: string): void {
    this.#read.push([queue, id]);
  }

  async #remove(): Promise<void> {
    const batch = this.#ended;
    this.#ended = this.#read;
    this.#read = [];
    await Promise.allSettled(batch.map(([queue, id]) => queue.remove(id)));
  }

  /** Those that are left lapse. */
  close(): void {
    clearInterval(this.#timer);
  }
}
