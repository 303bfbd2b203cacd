/**
 * Cancellations of the jobs that run in this process: the API publishes the id of a job whose client left. An id that arrives
 * just before its job starts is remembered for a while, so that no cancellation is lost between the two. A message is lost with its
 * connection, but not its mark in Redis: it is looked for at each reconnect, and by consumers now and then.
 */
import { ServiceError } from "@svc/contracts";
import type { Redis } from "@svc/service-kit";
import { CANCEL_CHANNEL, cancelKey } from "./protocol.ts";

const REMEMBERED_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/** One run of a job. */
export interface CancellableRun {
  signal: AbortSignal;
  /** Ends this run alone, whatever else runs under its id. */
  abort: (reason: Error) => void;
  /** Forgets it. */
  done: () => void;
}

export class Cancellations {
  /** A job that was lost while it ran may run here a second time before the first run has ended. */
  readonly #running = new Map<string, Set<AbortController>>();
  readonly #early = new Map<string, number>();
  #redis: Redis | undefined;

  async listen(subscriber: Redis): Promise<void> {
    subscriber.on("message", (channel: string, jobId: string) => {
      if (channel === CANCEL_CHANNEL) this.#cancel(jobId);
    });
    await subscriber.subscribe(CANCEL_CHANNEL);
    // The second subscription changes nothing: its reply says that the first one is in place.
    subscriber.on("ready", () => {
      subscriber.subscribe(CANCEL_CHANNEL).then(
        () => this.look(this.#running.keys()),
        () => undefined,
      );
    });
  }

  /** Marks are looked up by this connection. */
  lookBy(redis: Redis): void {
    this.#redis = redis;
  }

  /** Aborts those of these jobs that have a mark, all in one round trip. One that fails is followed by the next look. */
  async look(jobIds: Iterable<string>): Promise<void> {
    const ids = [...jobIds];
    if (ids.length === 0) return;
    const marks = (await this.#redis?.mget(ids.map(cancelKey)).catch(() => undefined)) ?? [];
    for (const [at, mark] of marks.entries()) if (mark !== null) this.#abort(ids[at] as string);
  }

  #cancel(jobId: string): void {
    if (this.#running.has(jobId)) this.#abort(jobId);
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

  begin(jobId: string): CancellableRun {
    const controller = new AbortController();
    if (this.#early.delete(jobId)) controller.abort(new ServiceError("execution_cancelled"));
    const runs = this.#running.get(jobId) ?? new Set();
    this.#running.set(jobId, runs.add(controller));
    const done = () => {
      runs.delete(controller);
      if (runs.size === 0) this.#running.delete(jobId);
    };
    return { signal: controller.signal, abort: (reason) => controller.abort(reason), done };
  }

  #abort(jobId: string): void {
    for (const run of this.#running.get(jobId) ?? []) run.abort(new ServiceError("execution_cancelled"));
  }

  abortAll(reason: Error): void {
    for (const runs of this.#running.values()) for (const run of runs) run.abort(reason);
  }
}
