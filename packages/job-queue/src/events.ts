/**
 * Output of running jobs, on its way from the worker to readers. Each job with events has a Redis stream, which keeps all events
 * from the beginning, and a channel for change notifications. There may be several readers, and they may come late. Only speed
 * depends on events: the answer of a job repeats all output. Output carries its offset, by which readers notice gaps and
 * repetitions: a write whose reply was lost is repeated.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { OUTPUT_STREAMS, type PlacedEvent, placedEventSchema, type RunEvent } from "@svc/contracts";
import { Condition, errorText, type Log, type Redis } from "@svc/service-kit";

/** How long the events of a job are kept after the last event. A run may write nothing for its whole duration. */
const EVENTS_LIFE_MS = 900_000;
/** Readers also poll, because a notification may be lost with its connection. */
const LOOK_MS = 2000;
/** Pause between attempts to write while Redis fails. */
const AGAIN_MS = 500;
/** Most entries per read. */
const BATCH = 500;
/** The message on a job's channel when the job has ended (sent by end-job.lua). */
const ENDED = "ended";

export const eventsKey = (jobId: string): string => `svc:events:${jobId}`;

/** Writes the events of a job in order, and sends waiting events together. After a cancellation it adds none. */
export class EventLog {
  readonly #redis: Redis;
  readonly #log: Log;
  readonly #key: string;
  readonly #cancelled: AbortSignal;
  readonly #ended = new AbortController();
  #at = { stdout: 0, stderr: 0 };
  #waiting: PlacedEvent[] = [];
  #sending: Promise<void> | undefined;

  constructor(redis: Redis, log: Log, jobId: string, cancelled: AbortSignal) {
    this.#redis = redis;
    this.#log = log;
    this.#key = eventsKey(jobId);
    this.#cancelled = cancelled;
  }

  /** `sessionId`: the storage session of the run's outputs. */
  add(event: RunEvent, sessionId: string): void {
    if (this.#cancelled.aborted) return;
    this.#waiting.push(this.#placed(event, sessionId));
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
  }

  #placed(event: RunEvent, sessionId: string): PlacedEvent {
    if (event.event === "started") {
      for (const stream of OUTPUT_STREAMS) this.#at[stream] = 0;
      return { ...event, session_id: sessionId };
    }
    const at = this.#at[event.event];
    this.#at[event.event] += event.text.length;
    return { ...event, at };
  }

  async #send(): Promise<void> {
    for (let isWarned = false; this.#waiting.length > 0; ) {
      const events = merged(this.#waiting);
      this.#waiting = [];
      try {
        await this.#write(events);
      } catch (error) {
        if (!isWarned)
          this.#log.warn({ err: errorText(error), key: this.#key }, "writing the events of a run failed");
        isWarned = true;
        if (this.#ended.signal.aborted) return;
        this.#waiting.unshift(...events);
        await sleep(AGAIN_MS, undefined, { signal: this.#ended.signal }).catch(() => undefined);
      }
    }
  }

  /** Only a start event creates the stream: output must not recreate a stream that was forgotten. */
  async #write(events: readonly PlacedEvent[]): Promise<void> {
    const commands = this.#redis.multi();
    for (const event of events) {
      const text = JSON.stringify(event);
      if (event.event === "started") commands.del(this.#key).xadd(this.#key, "*", "e", text);
      else commands.xadd(this.#key, "NOMKSTREAM", "*", "e", text);
    }
    await commands.pexpire(this.#key, EVENTS_LIFE_MS).publish(this.#key, "").exec();
  }

  /** Resolves when all added events are in Redis or lost. */
  async end(): Promise<void> {
    this.#ended.abort();
    await this.#sending;
  }
}

/** Merges adjacent output events of the same stream into one. */
export function merged(events: readonly PlacedEvent[]): PlacedEvent[] {
  const result: PlacedEvent[] = [];
  for (const event of events) {
    const last = result.at(-1);
    if (last !== undefined && "text" in last && "text" in event && follows(last, event))
      result[result.length - 1] = { ...last, text: last.text + event.text };
    else result.push(event);
  }
  return result;
}

type Output = Extract<PlacedEvent, { text: string }>;

const follows = (last: Output, event: Output) =>
  last.event === event.event && last.at + last.text.length === event.at;

interface Reader {
  news: Condition;
  /** Notify this reader only of the end of the job. */
  isOfEnd: boolean;
}

/** Reads the events of jobs. */
export class EventFeed {
  readonly #redis: Redis;
  #subscriber: Redis | undefined;
  readonly #readers = new Map<string, Set<Reader>>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  listen(subscriber: Redis): void {
    this.#subscriber = subscriber;
    subscriber.on("message", (channel: string, message: string) => {
      for (const { news, isOfEnd } of this.#readers.get(channel) ?? [])
        if (!isOfEnd || message === ENDED) news.notify();
    });
  }

  /**
   * Yields the events of a job from the beginning. Available events come together and merged. After `until` aborts, it yields the
   * remaining events and ends. While Redis fails, it keeps polling.
   */
  async *read(jobId: string, until: AbortSignal): AsyncGenerator<PlacedEvent[], void> {
    const key = eventsKey(jobId);
    const { news, leave } = this.#watch(jobId, false);
    try {
      for (let after = "-"; ; ) {
        const isOver = until.aborted;
        const entries = await this.#redis.xrange(key, after, "+", "COUNT", BATCH).catch(() => []);
        const last = entries.at(-1);
        if (last !== undefined) {
          after = `(${last[0]}`;
          yield merged(entries.map(([, fields]) => placedEventSchema.parse(JSON.parse(fields[1] ?? ""))));
        } else if (isOver) return;
        else await news.wait({ ms: LOOK_MS, signal: until });
      }
    } finally {
      leave();
    }
  }

  /** Notifies `news` when a kept job has ended, and sometimes before. The notification may get lost. */
  watchEnd(jobId: string): { news: Condition; leave: () => void } {
    return this.#watch(jobId, true);
  }

  #watch(jobId: string, isOfEnd: boolean): { news: Condition; leave: () => void } {
    const channel = eventsKey(jobId);
    const reader = { news: new Condition(), isOfEnd };
    const readers = this.#readers.get(channel) ?? new Set();
    const isFirst = readers.size === 0;
    readers.add(reader);
    this.#readers.set(channel, readers);
    // Events before the subscription caused no notification, so every reader looks again. If the subscription fails, readers poll.
    const notifyAll = () => {
      for (const { news } of readers) news.notify();
    };
    if (isFirst) this.#subscriber?.subscribe(channel).then(notifyAll, () => undefined);
    const leave = () => {
      readers.delete(reader);
      if (readers.size > 0) return;
      this.#readers.delete(channel);
      this.#subscriber?.unsubscribe(channel).catch(() => undefined);
    };
    return { news: reader.news, leave };
  }

  /** Deletes the events of a job that nobody will read again. */
  forget(jobId: string): void {
    this.#redis.unlink(eventsKey(jobId)).catch(() => undefined);
  }
}
