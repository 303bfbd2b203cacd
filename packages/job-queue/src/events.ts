/**
 * What running jobs write, on its way from the worker to whoever reads it: a stream in Redis for each job that somebody wants to read,
 * which keeps it from the beginning, and a channel that says when there is more. Readers may come late, and several at once. Nothing
 * rests on it but speed: the answer of a job holds all of it again.
 */
import { type RunEvent, runEventSchema } from "@svc/contracts";
import { Condition, type Log, type Redis, storeCall } from "@svc/service-kit";

/** How long the events of a job are kept after the last one; a run may say nothing for as long as a run may last. */
const EVENTS_LIFE_MS = 900_000;
/** Looks without having been told of anything: an announcement may be lost with its connection. */
const LOOK_MS = 2000;
/** Entries that are read at once. */
const BATCH = 500;

export const eventsKey = (jobId: string): string => `svc:events:${jobId}`;

/** Keeps the order of a job's events, and sends those that wait together. */
export class EventLog {
  readonly #redis: Redis;
  readonly #log: Log;
  readonly #key: string;
  #waiting: RunEvent[] = [];
  #sending: Promise<void> | undefined;

  constructor(redis: Redis, log: Log, jobId: string) {
    this.#redis = redis;
    this.#log = log;
    this.#key = eventsKey(jobId);
  }

  add(event: RunEvent): void {
    this.#waiting.push(event);
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
  }

  async #send(): Promise<void> {
    while (this.#waiting.length > 0) {
      const events = merged(this.#waiting);
      this.#waiting = [];
      const commands = this.#redis.multi();
      for (const event of events) {
        if (event.event === "started") commands.del(this.#key);
        commands.xadd(this.#key, "*", "e", JSON.stringify(event));
      }
      commands.pexpire(this.#key, EVENTS_LIFE_MS).publish(this.#key, "");
      try {
        await commands.exec();
      } catch (error) {
        this.#log.warn({ err: (error as Error).message, key: this.#key }, "events of a run were lost");
      }
    }
  }

  /** All that was added is in the store, or lost. */
  async end(): Promise<void> {
    await this.#sending;
  }
}

/** Output of one stream that follows on each other becomes one event. */
export function merged(events: readonly RunEvent[]): RunEvent[] {
  const result: RunEvent[] = [];
  for (const event of events) {
    const last = result.at(-1);
    if (last !== undefined && "text" in last && "text" in event && last.event === event.event)
      result[result.length - 1] = { ...last, text: last.text + event.text };
    else result.push(event);
  }
  return result;
}

/** Reads the events of jobs. */
export class EventFeed {
  readonly #redis: Redis;
  #subscriber: Redis | undefined;
  readonly #readers = new Map<string, Set<Condition>>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  listen(subscriber: Redis): void {
    this.#subscriber = subscriber;
    subscriber.on("message", (channel: string) => {
      for (const reader of this.#readers.get(channel) ?? []) reader.notify();
    });
  }

  /**
   * The events of a job from the beginning, those that are there together at once, merged. Ends when `until` is aborted and all that was
   * there by then has been given. Throws `store_unavailable`.
   */
  async *read(jobId: string, until: AbortSignal): AsyncGenerator<RunEvent[], void> {
    const key = eventsKey(jobId);
    const { more, leave } = await this.watch(jobId);
    try {
      for (let after = "-"; ; ) {
        const isOver = until.aborted;
        const entries = await storeCall(() => this.#redis.xrange(key, after, "+", "COUNT", BATCH));
        const last = entries.at(-1);
        if (last !== undefined) {
          after = `(${last[0]}`;
          yield merged(entries.map(([, fields]) => runEventSchema.parse(JSON.parse(fields[1] ?? ""))));
        } else if (isOver) return;
        else await more.wait({ ms: LOOK_MS, signal: until });
      }
    } finally {
      leave();
    }
  }

  /** `more` is notified when there is something new of the job, events or its end, unless the announcement is lost. */
  async watch(jobId: string): Promise<{ more: Condition; leave: () => void }> {
    const channel = eventsKey(jobId);
    const reader = new Condition();
    const readers = this.#readers.get(channel) ?? new Set();
    const isFirst = readers.size === 0;
    readers.add(reader);
    this.#readers.set(channel, readers);
    // Without an announcement the reader looks by itself.
    if (isFirst) await this.#subscriber?.subscribe(channel).catch(() => undefined);
    const leave = () => {
      readers.delete(reader);
      if (readers.size > 0) return;
      this.#readers.delete(channel);
      this.#subscriber?.unsubscribe(channel).catch(() => undefined);
    };
    return { more: reader, leave };
  }

  /** Nobody will read them again. */
  forget(jobId: string): void {
    this.#redis.unlink(eventsKey(jobId)).catch(() => undefined);
  }
}
