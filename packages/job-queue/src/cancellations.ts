/**
 * Cancellations of the jobs that run in this process: the API publishes the id of a job whose client left. An id that arrives
 * just before its job starts is remembered for a while, so that no cancellation is lost between the two.
 */
import { ServiceError } from "@svc/contracts";
import type { Redis } from "@svc/service-kit";
import { CANCEL_CHANNEL } from "./protocol.ts";

const REMEMBERED_MS = 60_000;
const MAX_REMEMBERED = 10_000;

export class Cancellations {
  readonly #running = new Map<string, AbortController>();
  readonly #early = new Map<string, number>();

  async listen(subscriber: Redis): Promise<void> {
    subscriber.on("message", (channel: string, jobId: string) => {
      if (channel === CANCEL_CHANNEL) this.#cancel(jobId);
    });
    await subscriber.subscribe(CANCEL_CHANNEL);
  }

  #cancel(jobId: string): void {
    if (this.#running.has(jobId)) this.abort(jobId, new ServiceError("execution_cancelled"));
    else this.#remember(jobId);
  }

  #remember(jobId: string): void {
    const now = Date.now();
    for (const [id, at] of this.#early) {
      if (now - at < REMEMBERED_MS && this.#early.size < MAX_REMEMBERED) break;
      this.#early.delete(id);
    }
    this.#early.set(jobId, now);
  }

  /** The signal of a starting job; `done` forgets it. */
  begin(jobId: string): { signal: AbortSignal; done: () => void } {
    const controller = new AbortController();
    if (this.#early.delete(jobId)) controller.abort(new ServiceError("execution_cancelled"));
    this.#running.set(jobId, controller);
    return { signal: controller.signal, done: () => this.#running.delete(jobId) };
  }

  /** Aborts a job if it runs here; says whether it does. */
  abort(jobId: string, reason: Error): boolean {
    const running = this.#running.get(jobId);
    running?.abort(reason);
    return running !== undefined;
  }

  abortAll(reason: Error): void {
    for (const controller of this.#running.values()) controller.abort(reason);
  }
}
