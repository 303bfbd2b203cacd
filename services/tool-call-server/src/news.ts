/**
 * Wakes whoever waits in this process when a session changes, wherever the change was made. One subscription serves all.
 * A message that was lost costs one sweep: revisions of the sessions that somebody waits for are compared every second.
 */
import { ServiceError } from "@svc/contracts";
import type { Log, Redis } from "@svc/service-kit";

const CHANNEL = "svc:tool:news";
const SWEEP_MS = 1000;
/** All waits of a process together; each holds a connection. */
const MAX_WAITS = 10_000;
/** Waits for one call: its caller, and callers whose loss was not noticed yet. */
const MAX_WAITS_FOR_ONE = 16;

type Revisions = (executions: readonly string[]) => Promise<(string | null)[]>;

export class News {
  readonly #waits = new Map<string, Set<Bell>>();
  readonly #seen = new Map<string, string | null>();
  readonly #revisions: Revisions;
  readonly #log: Log;
  #sweep: NodeJS.Timeout | undefined;
  #count = 0;

  constructor(revisions: Revisions, log: Log) {
    this.#revisions = revisions;
    this.#log = log;
  }

  async listen(subscriber: Redis): Promise<void> {
    subscriber.on("message", (_channel: string, topics: string) => {
      for (const topic of topics.split(" ")) this.#ring(topic);
    });
    // What was said while the connection was away is lost.
    subscriber.on("ready", () => this.#ringAll());
    await subscriber.subscribe(CHANNEL);
  }

  /** A bell that rings when the topic of the execution, or its end, is told; to be given back. */
  wait(execution: string, topic: string): Bell {
    if (this.#count >= MAX_WAITS || (this.#waits.get(topic)?.size ?? 0) >= MAX_WAITS_FOR_ONE) {
      throw new ServiceError("upstream_unavailable", "Too many requests wait for tool calls.", {
        status: 503,
      });
    }
    const bell = new Bell(execution, [topic, `${execution}/closed`]);
    for (const each of bell.topics) {
      const bells = this.#waits.get(each) ?? new Set();
      this.#waits.set(each, bells.add(bell));
    }
    this.#count++;
    this.#sweep ??= setInterval(() => void this.#lookForMissed(), SWEEP_MS);
    return bell;
  }

  giveBack(bell: Bell): void {
    for (const topic of bell.topics) {
      const bells = this.#waits.get(topic);
      bells?.delete(bell);
      if (bells?.size === 0) this.#waits.delete(topic);
    }
    if (!this.#waits.has(`${bell.execution}/closed`)) this.#seen.delete(bell.execution);
    if (--this.#count > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }

  /** What is known in this process already need not be looked up. */
  tell(topic: string, text: string): void {
    for (const bell of this.#waits.get(topic) ?? []) bell.ring(text);
  }

  #ring(topic: string): void {
    for (const bell of this.#waits.get(topic) ?? []) bell.ring();
  }

  #ringAll(): void {
    for (const bells of this.#waits.values()) for (const bell of bells) bell.ring();
  }

  async #lookForMissed(): Promise<void> {
    const executions = new Set(
      [...this.#waits.values()].flatMap((bells) => [...bells].map((b) => b.execution)),
    );
    const list = [...executions];
    try {
      const revisions = await this.#revisions(list);
      for (const [index, execution] of list.entries()) {
        const revision = revisions[index] ?? null;
        const known = this.#seen.get(execution);
        if (!this.#waits.has(`${execution}/closed`)) continue;
        this.#seen.set(execution, revision);
        if (known === revision && revision !== null) continue;
        for (const bell of this.#waits.get(`${execution}/closed`) ?? []) bell.ring();
      }
    } catch (error) {
      this.#log.debug({ err: (error as Error).message }, "sessions could not be looked at");
    }
  }
}

/** Rings once for each time that it is listened to; a ring before the listening counts. */
export class Bell {
  readonly execution: string;
  readonly topics: readonly string[];
  /** What there is to hear, if it came with a ring. */
  text: string | undefined;
  #rung = false;
  #listener: (() => void) | undefined;

  constructor(execution: string, topics: readonly string[]) {
    this.execution = execution;
    this.topics = topics;
  }

  ring(text?: string): void {
    this.text ??= text;
    this.#rung = true;
    this.#listener?.();
  }

  /** Resolves when it rings, the time is over or the signal aborts. */
  async heard(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          signal.removeEventListener("abort", done);
          this.#listener = undefined;
          resolve();
        };
        const timer = setTimeout(done, ms);
        signal.addEventListener("abort", done, { once: true });
        this.#listener = done;
      });
    }
    this.#rung = false;
  }
}
