/**
 * Cancels runs of this process from any process. The sender publishes the id of the run and sets a mark for it in Redis.
 * A message is lost when its connection is lost, but the mark stays. Marks are looked up at each reconnect and whenever
 * `look` is called.
 */
import { ServiceError } from "@svc/contracts";
import type { Redis } from "./client.ts";

/** The channel and keys that senders and receivers of a kind of cancellation share. */
export interface CancellationKind {
  /** Redis channel; the message is the id. */
  channel: string;
  /** Redis key of the mark of an id. */
  markKey: (id: string) => string;
  /** How long, in ms, an id is remembered that was published before its run begins. */
  rememberedMs: number;
}

const MAX_REMEMBERED = 10_000;

/**
 * Cancels the runs with this id, in any process. Sends both commands at once, so Redis executes them after everything that this
 * connection sent before.
 */
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
  /** Aborts only this run, not others with the same id. */
  abort: (reason: Error) => void;
  /** Forgets the run. Call it when the run has ended. */
  done: () => void;
}

export class Cancellations {
  readonly #redis: Redis;
  readonly #kind: CancellationKind;
  /** An id may have several runs here: one that lost its lock may still run when the next begins. */
  readonly #running = new Map<string, Set<AbortController>>();
  readonly #early = new Map<string, number>();

  /** `redis`: the connection for looking up marks. */
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
    // ioredis subscribes again by itself after a reconnect. The reply to this second subscription shows that the first is in place.
    subscriber.on("ready", () => {
      subscriber.subscribe(own).then(
        () => this.look(this.#running.keys()),
        () => undefined,
      );
    });
  }

  /** Aborts those of the given runs that have a mark, in one round trip. Never rejects: after a failure the next look finds the marks. */
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

  /** Does work with a signal that a cancellation aborts. After a cancellation any failure of the work throws the cancellation. */
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
