/**
 * Waits of this process: for the result of a call, for the calls of a batch. A wait ends with what it waited for, with its
 * time, with its client, or with this server; what it waited for stays in the store, so it can be asked for again.
 */
import { ServiceError } from "@svc/contracts";
import type { News } from "./news.ts";
import type { Call, CallState, Listing, Sessions } from "./sessions.ts";

/** How soon a wait looks again when the store is away. */
const AGAIN_MS = 1000;
/** A result may come at the last moment: the store's clock decides, not this timer. */
const MARGIN_MS = 5;

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
  async result(call: Call, record: () => Promise<CallState>, wait: AbortController): Promise<string> {
    const bell = this.#news.wait(call.execution, `${call.execution}/${call.id}`);
    this.#open.add(wait);
    try {
      let state = await record();
      for (;;) {
        if (state.state === "answered") return state.text;
        if (state.leftMs <= 0) throw new ServiceError("tool_call_timeout");
        await bell.heard(state.leftMs + MARGIN_MS, wait.signal);
        wait.signal.throwIfAborted();
        if (bell.text !== undefined) return bell.text;
        state = await patiently(async () => (await this.#sessions.look(call)) ?? (await recordAgain(record)));
      }
    } finally {
      this.#open.delete(wait);
      this.#news.giveBack(bell);
    }
  }

  /** Results that the store has for these calls now, by call id. */
  answered(execution: string, results: ReadonlyMap<string, string>): void {
    for (const [id, text] of results) this.#news.tell(`${execution}/${id}`, text);
  }

  /** The open calls of a session, once they are complete or the time is over. */
  async pending(
    execution: string,
    ids: readonly string[],
    waitMs: number,
    wait: AbortController,
  ): Promise<Listing> {
    const until = performance.now() + waitMs;
    const bell = this.#news.wait(execution, execution);
    this.#open.add(wait);
    try {
      for (;;) {
        const leftMs = until - performance.now();
        const listing = await this.#sessions.pending(execution, ids, leftMs > 0);
        if (listing !== undefined) return listing;
        await bell.heard(leftMs, wait.signal);
        wait.signal.throwIfAborted();
      }
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

/** A token that is no longer good says that the session has ended. */
async function recordAgain(record: () => Promise<CallState>): Promise<CallState> {
  try {
    return await record();
  } catch (error) {
    if (!(error instanceof ServiceError && error.code === "callback_refused")) throw error;
    throw new ServiceError("execution_not_found");
  }
}
