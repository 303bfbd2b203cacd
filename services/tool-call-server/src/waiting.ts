/**
 * Waits of this process: for the result of a call, for the calls of a batch. A wait ends with what it waited for, with its
 * time, with its client, or with this server; what it waited for stays in the store, so it can be asked for again.
 */
import { ServiceError } from "@svc/contracts";
import type { Bell, News } from "./news.ts";
import type { Call, CallState, Listing, Sessions, Unopened } from "./sessions.ts";

/** How soon a wait looks again when the store is away. */
const AGAIN_MS = 1000;
/** A result may come at the last moment: the store's clock decides, not this timer. */
const MARGIN_MS = 5;
/** A session is opened while its program is started. A call waits for it, with pauses that double: for a second in all. */
const OPENING_MS = { first: 5, last: 640 } as const;

type RecordCall = () => Promise<CallState | Unopened>;

export class Waiting {
  readonly #sessions: Sessions;
  readonly #news: News;
  readonly #open = new Set<AbortController>();

  constructor(sessions: Sessions, news: News) {
    this.#sessions = sessions;
    this.#news = news;
  }

  /** Ends all waits with `shutting_down`. */
  stop(): void {
    const reason = new ServiceError("shutting_down", undefined, { headers: { connection: "close" } });
    for (const wait of this.#open) wait.abort(reason);
  }

  /**
   * The text of a call's answer. `record` records the call, or finds it again; it is made again when a crashed store has
   * forgotten the call but not its session. Aborting `wait` ends the wait.
   */
  result(call: Call, record: RecordCall, wait: AbortController): Promise<string> {
    return this.#listening(call.execution, `${call.execution}/${call.id}`, wait, async (bell) => {
      let state = await this.#first(record, bell, wait.signal);
      for (;;) {
        if (state.state === "answered") return state.text;
        if (state.leftMs <= 0) throw new ServiceError("tool_call_timeout");
        await bell.heard(state.leftMs + MARGIN_MS, wait.signal);
        wait.signal.throwIfAborted();
        if (bell.text !== undefined) return bell.text;
        state = await patiently(async () => (await this.#sessions.look(call)) ?? (await recordAgain(record)));
      }
    });
  }

  /** Waits only for the session of calls that `record` records; `call` is one of them. */
  recorded({ execution, id }: Call, record: RecordCall, wait: AbortController): Promise<void> {
    return this.#listening(execution, `${execution}/${id}`, wait, async (bell) => {
      await this.#first(record, bell, wait.signal);
    });
  }

  /** The state of a call whose session may just be being opened. */
  async #first(record: RecordCall, bell: Bell, signal: AbortSignal): Promise<CallState> {
    for (let pauseMs: number = OPENING_MS.first; ; pauseMs *= 2) {
      const state = await record();
      if (state.state !== "unopened") return state;
      if (pauseMs > OPENING_MS.last) throw new ServiceError("callback_refused");
      await bell.heard(pauseMs, signal);
      signal.throwIfAborted();
    }
  }

  /** Results that the store has for these calls now, by call id. */
  answered(execution: string, results: ReadonlyMap<string, string>): void {
    for (const [id, text] of results) this.#news.tell(`${execution}/${id}`, text);
  }

  /** The open calls of a session, once they are complete or the time is over. */
  pending(
    execution: string,
    ids: readonly string[],
    waitMs: number,
    wait: AbortController,
  ): Promise<Listing> {
    const until = performance.now() + waitMs;
    return this.#listening(execution, execution, wait, async (bell) => {
      for (;;) {
        const leftMs = until - performance.now();
        const listing = await this.#sessions.pending(execution, ids, leftMs > 0);
        if (listing !== undefined) return listing;
        await bell.heard(leftMs, wait.signal);
        wait.signal.throwIfAborted();
      }
    });
  }

  async #listening<T>(
    execution: string,
    topic: string,
    wait: AbortController,
    listen: (bell: Bell) => Promise<T>,
  ): Promise<T> {
    const bell = this.#news.wait(execution, topic);
    this.#open.add(wait);
    try {
      return await listen(bell);
    } finally {
      this.#open.delete(wait);
      this.#news.giveBack(bell);
    }
  }
}

/** A store that is away for a while ends no wait: the call is recorded. */
async function patiently(look: () => Promise<CallState>): Promise<CallState> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === "store_unavailable")) throw error;
    return { state: "waiting", leftMs: AGAIN_MS };
  }
}

/** A session that is not there, or has another token, has ended. */
async function recordAgain(record: RecordCall): Promise<CallState> {
  try {
    const state = await record();
    if (state.state !== "unopened") return state;
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === "callback_refused")) throw error;
  }
  throw new ServiceError("execution_not_found");
}
