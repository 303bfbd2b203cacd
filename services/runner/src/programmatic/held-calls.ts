/**
 * The calls of one program that have no result yet. Each is recorded at the gateway when its batch is complete. Results of a
 * short pause come with its resume, so nobody waits at the gateway for them; after a longer one, and for results that are
 * too large to travel, each call waits there. What comes second of the two says nothing new.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { PausedCall } from "@svc/contracts";
import type { CallReply } from "./relay.ts";
import type { ToolCall } from "./tool-request.ts";
import type { ToolAnswer, ToolRecord, ToolUpstream, UpstreamCall } from "./upstream.ts";

/** A pause that is longer waits at the gateway. */
const SHORT_PAUSE_MS = 1000;
/** Texts of calls that a pause tells of, together; also bounds how deeply they are nested. */
const TOLD_BYTES = 8192;

interface HeldCall {
  call: ToolCall;
  bytes: number;
  reply: CallReply;
  isSent: boolean;
  /** Of its wait at the gateway. */
  wait?: AbortController;
}

export interface HeldCallsOptions {
  upstream: ToolUpstream;
  /** What each call is sent with. */
  sentWith: Pick<UpstreamCall, "token" | "executionId" | "requestId">;
  /** Aborted: no call is sent any more. */
  signal: AbortSignal;
  onAnswer: (callId: string, reply: CallReply, answer: ToolAnswer) => void;
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
    this.#held.set(callId, { call, bytes, reply, isSent: false });
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
      told.push({ call_id, tool_name: held.call.name, tool_input: held.call.input });
    }
    return told;
  }

  /** The program pauses: what was not sent is recorded. */
  paused(): void {
    for (const [callId, held] of this.#held) {
      if (held.isSent) continue;
      held.isSent = true;
      const { upstream, signal } = this.#options;
      const asked = this.#ask(callId, held, upstream.record(this.#upstreamCall(callId, held), signal));
      const recording: Promise<void> = asked.finally(() => this.#recording.delete(recording));
      this.#recording.add(recording);
    }
    this.#longPause = setTimeout(() => this.expect([...this.#held.keys()]), SHORT_PAUSE_MS).unref();
  }

  /** Waits at the gateway for the results of these calls. */
  expect(callIds: readonly string[]): void {
    for (const callId of callIds) {
      const held = this.#held.get(callId);
      if (held === undefined || held.wait !== undefined) continue;
      held.wait = new AbortController();
      const { upstream, signal } = this.#options;
      const either = AbortSignal.any([signal, held.wait.signal]);
      void this.#ask(callId, held, upstream.answer(this.#upstreamCall(callId, held), either));
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

  #upstreamCall(callId: string, { call: { text } }: HeldCall): UpstreamCall {
    return { ...this.#options.sentWith, callId, text };
  }

  /** `asked` rejects only when nobody wants to know any more. Never rejects itself. */
  #ask(callId: string, held: HeldCall, asked: Promise<ToolRecord>): Promise<void> {
    const { onAnswer, onError } = this.#options;
    return asked
      .catch(() => undefined)
      .then((answer) => {
        if (answer === undefined || answer.kind === "recorded") return;
        if (this.#held.get(callId) !== held) return;
        if (answer.kind === "unanswered") delete held.wait;
        else this.take(callId);
        onAnswer(callId, held.reply, answer);
      })
      .catch(onError);
  }
}
