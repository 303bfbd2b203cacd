/**
 * The calls of one program that have no result yet. When the program pauses they are recorded at the gateway, in one request;
 * where that is refused, each on its own, so that each has its own outcome. Results of a short pause come with its resume, so
 * nobody waits at the gateway for them; after a longer one, and for results that are too large to travel, each call waits
 * there. What comes second of the two says nothing new.
 */
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import type { PausedCall } from "@svc/contracts";
import { type BatchedCall, batchesOf, bodyOf } from "./batches.ts";
import type { CallReply } from "./relay.ts";
import type { ToolCall } from "./tool-request.ts";
import type { Sender, ToolAnswer, ToolUpstream } from "./upstream.ts";

/** A pause that is longer waits at the gateway. */
const SHORT_PAUSE_MS = 1000;
/** Texts of calls that a pause tells of, together; also bounds how deeply they are nested. */
const TOLD_BYTES = 8192;

interface HeldCall extends BatchedCall, ToolCall {
  reply: CallReply;
  isSent: boolean;
  /** Of its wait at the gateway. */
  wait?: AbortController;
}

export interface HeldCallsOptions {
  upstream: ToolUpstream;
  sender: Sender;
  /** Of one request to the gateway. */
  maxBytes: number;
  /** Aborted: no call is sent any more. */
  signal: AbortSignal;
  onAnswer: (callId: string, reply: CallReply, answer: ToolAnswer) => void;
  /** Must not throw. */
  onError: (error: unknown) => void;
}

export class HeldCalls {
  readonly #options: HeldCallsOptions;
  readonly #held = new Map<string, HeldCall>();
  readonly #recording = new Set<Promise<void>>();
  #bytes = 0;
  #longPause: NodeJS.Timeout | undefined;

  constructor(options: HeldCallsOptions) {
    this.#options = options;
  }

  /** Of all texts. */
  get bytes(): number {
    return this.#bytes;
  }

  add(callId: string, call: ToolCall, bytes: number, reply: CallReply): void {
    this.#bytes += bytes;
    this.#held.set(callId, { ...call, callId, bytes, reply, isSent: false });
  }

  /** Where the result of a call goes that came with a resume; undefined when the call is not held any more. */
  take(callId: string): CallReply | undefined {
    const held = this.#held.get(callId);
    if (held === undefined) return undefined;
    this.#held.delete(callId);
    this.#bytes -= held.bytes;
    held.wait?.abort();
    return held.reply;
  }

  /** The calls themselves, unless they are large. */
  told(callIds: readonly string[]): PausedCall[] | undefined {
    const told: PausedCall[] = [];
    let left = TOLD_BYTES;
    for (const call_id of callIds) {
      const held = this.#held.get(call_id);
      left -= held?.bytes ?? Number.POSITIVE_INFINITY;
      if (held === undefined || left < 0) return undefined;
      told.push({ call_id, tool_name: held.name, tool_input: held.input });
    }
    return told;
  }

  /** The program pauses: what was not sent is recorded, behind the answer that tells of it and however soon results come. */
  paused(): void {
    const unsent = [...this.#held.values()].filter(({ isSent }) => !isSent);
    for (const held of unsent) held.isSent = true;
    const { batches, tooLarge } = batchesOf(unsent, this.#options.maxBytes);
    for (const batch of batches) {
      const recording = this.#record(batch).finally(() => this.#recording.delete(recording));
      this.#recording.add(recording);
    }
    this.expect(tooLarge.map(({ callId }) => callId));
    this.#longPause = setTimeout(() => this.expect([...this.#held.keys()]), SHORT_PAUSE_MS).unref();
  }

  /** Waits at the gateway for the results of these calls. */
  expect(callIds: readonly string[]): void {
    for (const callId of callIds) {
      const held = this.#held.get(callId);
      if (held === undefined || held.wait !== undefined) continue;
      held.wait = new AbortController();
      void this.#answer(held, held.wait.signal);
    }
  }

  /** All that was sent is recorded and charged, or this time is over. */
  async recorded(withinMs: number): Promise<void> {
    if (this.#recording.size === 0) return;
    const time = new AbortController();
    await Promise.race([
      Promise.all(this.#recording),
      sleep(withinMs, undefined, { signal: time.signal }).catch(() => undefined),
    ]);
    time.abort();
  }

  /** The program goes on, or has gone. */
  unpaused(): void {
    clearTimeout(this.#longPause);
  }

  /** Never rejects. */
  async #record(calls: readonly HeldCall[]): Promise<void> {
    try {
      await this.#recordAll(calls);
    } catch (error) {
      this.#options.onError(error);
    }
  }

  async #recordAll(calls: readonly HeldCall[]): Promise<void> {
    const { upstream, sender, signal } = this.#options;
    await turn();
    // It rejects when nobody wants to know any more.
    const record = await upstream.record(sender, bodyOf(calls), signal).catch(() => undefined);
    if (record === undefined || record.kind === "recorded") return;
    const [first, ...others] = calls as [HeldCall];
    if (others.length === 0) this.#heard(first, record);
    else await Promise.all(calls.map((call) => this.#record([call])));
  }

  /** Never rejects. */
  async #answer(held: HeldCall, gone: AbortSignal): Promise<void> {
    const { upstream, sender, signal } = this.#options;
    const either = AbortSignal.any([signal, gone]);
    const answer = await upstream.answer(sender, held.callId, held.text, either).catch(() => undefined);
    if (answer !== undefined) this.#heard(held, answer);
  }

  #heard(held: HeldCall, answer: ToolAnswer): void {
    const { callId, reply } = held;
    if (this.#held.get(callId) !== held) return;
    if (answer.kind === "unanswered") delete held.wait;
    else this.take(callId);
    try {
      this.#options.onAnswer(callId, reply, answer);
    } catch (error) {
      this.#options.onError(error);
    }
  }
}
