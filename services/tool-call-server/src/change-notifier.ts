/**
 * Wakes the waiting requests of this process when an exchange changes, whichever server changed it. One Redis subscription serves all. A sweep
 * finds changes whose message was lost: every second it compares the revisions of all exchanges with waiting requests.
 */
import { ServiceError } from "@svc/contracts";
import { Condition, errorText, type Log, type Redis } from "@svc/service-kit";

const CHANNEL = "svc:tool:changes";
const SWEEP_MS = 1000;
/** Limit of a process; each subscription holds a connection. */
const MAX_SUBSCRIPTIONS = 10_000;
/** Limit of one topic, such as a call: its caller, and earlier callers whose disconnection was not noticed yet. */
const MAX_PER_TOPIC = 16;

type Revisions = (executions: readonly string[]) => Promise<(string | null)[]>;

/** A waiting request. Its condition is notified at changes of its topic and at the end of its exchange. */
export class Subscription {
  readonly execution: string;
  readonly topics: readonly string[];
  readonly changed = new Condition();
  /** Text of the result, if the notification carried it. */
  text: string | undefined;

  constructor(execution: string, topic: string) {
    this.execution = execution;
    this.topics = [topic, closedTopic(execution)];
  }
}

const closedTopic = (execution: string) => `${execution}/closed`;

export class ChangeNotifier {
  readonly #subscriptions = new Map<string, Set<Subscription>>();
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
      for (const topic of topics.split(" ")) this.#notify(topic);
    });
    // Messages are lost while the connection is away.
    subscriber.on("ready", () => this.#notifyAll());
    await subscriber.subscribe(CHANNEL);
  }

  /** To be ended with `unsubscribe`. */
  subscribe(execution: string, topic: string): Subscription {
    if (this.#count >= MAX_SUBSCRIPTIONS || (this.#subscriptions.get(topic)?.size ?? 0) >= MAX_PER_TOPIC) {
      throw new ServiceError("upstream_unavailable", "Too many requests wait for tool calls.", {
        status: 503,
      });
    }
    const subscription = new Subscription(execution, topic);
    for (const each of subscription.topics) {
      const all = this.#subscriptions.get(each) ?? new Set();
      this.#subscriptions.set(each, all.add(subscription));
    }
    this.#count++;
    this.#sweep ??= setInterval(() => void this.#findMissed(), SWEEP_MS);
    return subscription;
  }

  unsubscribe(subscription: Subscription): void {
    for (const topic of subscription.topics) {
      const all = this.#subscriptions.get(topic);
      all?.delete(subscription);
      if (all?.size === 0) this.#subscriptions.delete(topic);
    }
    const { execution } = subscription;
    if (!this.#subscriptions.has(closedTopic(execution))) this.#seen.delete(execution);
    if (--this.#count > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }

  /** A subscriber has read its exchange at this revision: only another revision makes a sweep notify it. */
  saw(execution: string, revision: string | null): void {
    // An older revision stays, because other subscribers may have read nothing since.
    if (!this.#seen.has(execution)) this.#seen.set(execution, revision);
  }

  /** Notifies the subscriptions of a topic of a result that this process stored. They get its text, so they need not read Redis. */
  publish(topic: string, text: string): void {
    for (const subscription of this.#subscriptions.get(topic) ?? []) {
      subscription.text ??= text;
      subscription.changed.notify();
    }
  }

  #notify(topic: string): void {
    for (const { changed } of this.#subscriptions.get(topic) ?? []) changed.notify();
  }

  #notifyAll(): void {
    for (const topic of this.#subscriptions.keys()) this.#notify(topic);
  }

  async #findMissed(): Promise<void> {
    const executions = new Set(
      [...this.#subscriptions.values()].flatMap((all) => [...all].map((s) => s.execution)),
    );
    const list = [...executions];
    try {
      const revisions = await this.#revisions(list);
      for (const [index, execution] of list.entries()) {
        const revision = revisions[index] ?? null;
        const seen = this.#seen.get(execution);
        if (!this.#subscriptions.has(closedTopic(execution))) continue;
        this.#seen.set(execution, revision);
        if (seen !== revision || revision === null) this.#notify(closedTopic(execution));
      }
    } catch (error) {
      this.#log.debug({ err: errorText(error) }, "reading the revisions of exchanges failed");
    }
  }
}
