/**
 * Long polls: requests that wait for the result of a call or for the calls of a batch. A poll ends with its result, at its
 * timeout, when its client disconnects, or when this server stops. The result stays in the store, so polls can be repeated.
 */
import { ServiceError } from "@svc/contracts";
import { LongRequests } from "@svc/service-kit";
import type { ChangeNotifier, Subscription } from "./change-notifier.ts";
import type { Call, CallState, Exchanges, Listing, Unopened } from "./exchanges.ts";

/** How soon a poll reads again while Redis is away. */
const RETRY_MS = 1000;
/** Extra wait, because a result may come at the last moment: Redis's clock decides on the timeout, not this timer. */
const MARGIN_MS = 5;
/** An exchange opens while its program starts, so the first call may come before it. It is retried with doubling pauses, 1.3 s in all. */
const OPENING_MS = { first: 5, last: 640 } as const;

type RecordCall = () => Promise<CallState | Unopened>;

export class LongPolls {
  readonly #exchanges: Exchanges;
  readonly #notifier: ChangeNotifier;
  readonly #open = new LongRequests();

  constructor(exchanges: Exchanges, notifier: ChangeNotifier) {
    this.#exchanges = exchanges;
    this.#notifier = notifier;
  }

  /** Ends all polls with `shutting_down`, and those that still arrive. */
  stop(): void {
    this.#open.stop();
  }

  /**
   * Waits for the text of a call's answer. `record` records the call or finds it. It is called again when a crashed Redis has lost the call but
   * not its exchange. Aborting `poll` ends the poll.
   */
  result(call: Call, record: RecordCall, poll: AbortController): Promise<string> {
    return this.#subscribed(call.execution, `${call.execution}/${call.id}`, poll, async (change) => {
      let state = await this.#first(record, change, poll.signal);
      for (;;) {
        if (state.state === "answered") return state.text;
        if (state.leftMs <= 0) throw new ServiceError("tool_call_timeout");
        await change.changed.wait({ ms: state.leftMs + MARGIN_MS, signal: poll.signal });
        poll.signal.throwIfAborted();
        if (change.text !== undefined) return change.text;
        state = await whenAvailable(
          async () => (await this.#exchanges.look(call)) ?? (await recordAgain(record)),
        );
      }
    });
  }

  /** Records calls with `record`, and waits only until their exchange is open. The given call is one of them. */
  async recorded({ execution, id }: Call, record: RecordCall, poll: AbortController): Promise<void> {
    // Subscribes only if it must wait, so that requests that wait for results take no places from calls that need no wait.
    if ((await record()).state !== "unopened") return;
    await this.#subscribed(execution, `${execution}/${id}`, poll, async (change) => {
      await this.#first(record, change, poll.signal);
    });
  }

  /** The state of a call whose exchange may not be open yet. */
  async #first(record: RecordCall, change: Subscription, signal: AbortSignal): Promise<CallState> {
    for (let pauseMs: number = OPENING_MS.first; ; pauseMs *= 2) {
      const state = await record();
      if (state.state !== "unopened") return state;
      if (pauseMs > OPENING_MS.last) throw new ServiceError("callback_refused");
      await change.changed.wait({ ms: pauseMs, signal: signal });
      signal.throwIfAborted();
    }
  }

  /** Delivers results that are now stored, by call id, to the waiting requests of this process. */
  answered(execution: string, results: ReadonlyMap<string, string>): void {
    for (const [id, text] of results) this.#notifier.publish(`${execution}/${id}`, text);
  }

  /** Waits for the open calls of an exchange, until they are complete or the time is over. */
  pending(
    execution: string,
    ids: readonly string[],
    waitMs: number,
    poll: AbortController,
  ): Promise<Listing> {
    const until = performance.now() + waitMs;
    return this.#subscribed(execution, execution, poll, async (change) => {
      for (;;) {
        const leftMs = until - performance.now();
        const listing = await this.#exchanges.pending(execution, ids, leftMs > 0);
        if ("calls" in listing) return listing;
        this.#notifier.saw(execution, listing.revision);
        await change.changed.wait({ ms: leftMs, signal: poll.signal });
        poll.signal.throwIfAborted();
      }
    });
  }

  async #subscribed<T>(
    execution: string,
    topic: string,
    poll: AbortController,
    work: (change: Subscription) => Promise<T>,
  ): Promise<T> {
    const change = this.#notifier.subscribe(execution, topic);
    this.#open.begin(poll);
    try {
      return await work(change);
    } finally {
      this.#open.end(poll);
      this.#notifier.unsubscribe(change);
    }
  }
}

/** Lets a poll outlast an outage of Redis: its call is already recorded. */
async function whenAvailable(look: () => Promise<CallState>): Promise<CallState> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === "store_unavailable")) throw error;
    return { state: "waiting", leftMs: RETRY_MS };
  }
}

/** Records a lost call again. An exchange that does not exist, or has another token, was closed. */
async function recordAgain(record: RecordCall): Promise<CallState> {
  try {
    const state = await record();
    if (state.state !== "unopened") return state;
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === "callback_refused")) throw error;
  }
  throw new ServiceError("execution_not_found");
}
