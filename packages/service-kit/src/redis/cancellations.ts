/**
 * Cancellations of what runs in this process, from any process: the id of a run is published, and marked in Redis. A message is lost with
 * the connection that it is for, but not its mark: that is looked for at each reconnect, and whenever somebody asks.
 */
import { ServiceError } from "@svc/contracts";
import type { Redis } from "./client.ts";

/** What a cancellation is known by to those who send it and those who hear of it. */
export interface CancellationKind {
  /** Redis channel; the message is the id. */
  channel: string;
  /** Redis key of the mark of an id. */
  markKey: (id: string) => string;
  /** For so long, in ms, an id that is published before its run begins is remembered. */
  rememberedMs: number;
}

const MAX_REMEMBERED = 10_000;

/** Cancels what runs under an id, wherever it runs. Both commands are sent at once: whatever this connection sent before is done before. */
export async function sendCancellation(
  redis: Redis,
  { channel, markKey }: CancellationKind,
  id: string,
  lifeMs: number,
): Promise<void> {
  await Promise.all([redis.set(markKey(id), "", "PX", lifeMs), redis.publish(channel, id)]);
}

export interface CancellableRun {
  signal: AbortSignal;
  /** Ends this run alone, whatever else runs under its id. */
  abort: (reason: Error) => void;
  /** Forgets it. */
  done: () => void;
}

export class Cancellations {
  readonly #redis: Redis;
  readonly #kind: CancellationKind;
  /** An id may run here twice: what was lost and begun again may not have ended yet. */
  readonly #running = new Map<string, Set<AbortController>>();
  readonly #early = new Map<string, number>();

  /** Marks are looked up by this connection. */
  constructor(redis: Redis, kind: CancellationKind) {
    this.#redis = redis;
    this.#kind = kind;
  }

  async listen(subscriber: Redis): Promise<void> {
    const { channel: own } = this.#kind;
    subscriber.on("message", (channel: string, id: string) => {
      if (channel === own) this.#cancel(id);
    });
    await subscriber.subscribe(own);
    // The second subscription changes nothing: its reply says that the first one is in place.
    subscriber.on("ready", () => {
      subscriber.subscribe(own).then(
        () => this.look(this.#running.keys()),
        () => undefined,
      );
    });
  }

  /** Aborts those of these runs that have a mark, all in one round trip. Never rejects: one that fails is followed by the next look. */
  async look(of: Iterable<string>): Promise<void> {
    const ids = [...of];
    if (ids.length === 0) return;
    const marks = await this.#redis.mget(ids.map(this.#kind.markKey)).catch(() => []);
    for (const [at, mark] of marks.entries()) if (mark !== null) this.#abort(ids[at] as string);
  }

  #cancel(id: string): void {
    if (this.#running.has(id)) this.#abort(id);
    else if (this.#kind.rememberedMs > 0) this.#remember(id);
  }

  #remember(id: string): void {
    const now = performance.now();
    for (const [old, at] of this.#early) {
      if (now - at < this.#kind.rememberedMs && this.#early.size < MAX_REMEMBERED) break;
      this.#early.delete(old);
    }
    this.#early.set(id, now);
  }

  begin(id: string): CancellableRun {
    const controller = new AbortController();
    if (this.#early.delete(id)) controller.abort(new ServiceError("execution_cancelled"));
    const runs = this.#running.get(id) ?? new Set();
    this.#running.set(id, runs.add(controller));
    const done = () => {
      runs.delete(controller);
      if (runs.size === 0) this.#running.delete(id);
    };
    return { signal: controller.signal, abort: (reason) => controller.abort(reason), done };
  }

  /** Does work under a signal that a cancellation aborts. However work fails then, it was cancelled. */
  async during<T>(id: string, work: (cancelled: AbortSignal) => Promise<T>): Promise<T> {
    const { signal, done } = this.begin(id);
    try {
      return await work(signal);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      done();
    }
  }

  #abort(id: string): void {
    for (const run of this.#running.get(id) ?? []) run.abort(new ServiceError("execution_cancelled"));
  }

  abortAll(reason: Error): void {
    for (const runs of this.#running.values()) for (const run of runs) run.abort(reason);
  }
}
