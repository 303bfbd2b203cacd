/**
 * The calls of one program that have no result yet. When the program pauses they are recorded at the tool call server, in
 * batches; calls of a refused batch are recorded one by one, so that each has its own outcome. Results of a short pause come
 * with its resume. After a second, and for results that are too large for the resume, each call waits at the tool call
 * server. A result may come both ways: the first one counts, and both are the same.
 */
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { MAX_RECORDED_CALLS, type PausedCall } from "@svc/contracts";
import type { CallReply } from "./relay.ts";
import type { Sender, ToolAnswer, ToolCallClient } from "./tool-call-client.ts";
import type { ToolCall } from "./tool-request.ts";

/** After this time of a pause, the calls wait at the tool call server. */
const SHORT_PAUSE_MS = 1000;
/** Largest total of call texts that a pause reports; also bounds how deeply they are nested. */
const REPORTED_BYTES = 8192;

export interface BatchedCall {
  callId: string;
  /** Body of `POST /tool-call`: the text of one JSON value. */
  text: string;
  /** Size of the text. */
  bytes: number;
}

interface OutstandingCall extends BatchedCall, ToolCall {
  reply: CallReply;
  isSent: boolean;
  /** Aborts its wait at the gateway. */
  wait?: AbortController;
}

export interface OutstandingCallsOptions {
  client: ToolCallClient;
  sender: Sender;
  /** Largest body of one request to the gateway. */
  maxBytes: number;
  /** Aborted: no call is sent any more. */
  signal: AbortSignal;
  onAnswer: (callId: string, reply: CallReply, answer: ToolAnswer) => void;
  /** Must not throw. */
  onError: (error: unknown) => void;
}

export class OutstandingCalls {
  readonly #options: OutstandingCallsOptions;
  readonly #calls = new Map<string, OutstandingCall>();
  readonly #recording = new Set<Promise<void>>();
  #bytes = 0;
  #longPause: NodeJS.Timeout | undefined;

  constructor(options: OutstandingCallsOptions) {
    this.#options = options;
  }

  /** Size of all texts. */
  get bytes(): number {
    return this.#bytes;
  }

  add(callId: string, call: ToolCall, bytes: number, reply: CallReply): void {
    this.#bytes += bytes;
    this.#calls.set(callId, { ...call, callId, bytes, reply, isSent: false });
  }

  /** Removes a call whose result came with a resume, and returns its reply; undefined: the call already has its result. */
  remove(callId: string): CallReply | undefined {
    const call = this.#calls.get(callId);
    if (call === undefined) return undefined;
    this.#calls.delete(callId);
    this.#bytes -= call.bytes;
    call.wait?.abort();
    return call.reply;
  }

  /** The calls as a pause reports them; undefined when they are large. */
  reported(callIds: readonly string[]): PausedCall[] | undefined {
    const reported: PausedCall[] = [];
    let left = REPORTED_BYTES;
    for (const call_id of callIds) {
      const call = this.#calls.get(call_id);
      left -= call?.bytes ?? Number.POSITIVE_INFINITY;
      if (call === undefined || left < 0) return undefined;
      reported.push({ call_id, tool_name: call.name, tool_input: call.input });
    }
    return reported;
  }

  /** The program pauses: records new calls in the background, even if their results come soon. */
  paused(): void {
    const unsent = [...this.#calls.values()].filter(({ isSent }) => !isSent);
    for (const call of unsent) call.isSent = true;
    const { batches, tooLarge } = batchesOf(unsent, this.#options.maxBytes);
    for (const batch of batches) {
      const recording = this.#record(batch).finally(() => this.#recording.delete(recording));
      this.#recording.add(recording);
    }
    this.awaitResults(tooLarge.map(({ callId }) => callId));
    this.#longPause = setTimeout(() => this.awaitResults([...this.#calls.keys()]), SHORT_PAUSE_MS).unref();
  }

  /** Waits at the tool call server for the results of these calls. */
  awaitResults(callIds: readonly string[]): void {
    for (const callId of callIds) {
      const call = this.#calls.get(callId);
      if (call === undefined || call.wait !== undefined) continue;
      call.wait = new AbortController();
      void this.#answer(call, call.wait.signal);
    }
  }

  /** Resolves when all calls are recorded and charged, or after this time. */
  async recorded(withinMs: number): Promise<void> {
    if (this.#recording.size === 0) return;
    const time = new AbortController();
    await Promise.race([
      Promise.all(this.#recording),
      sleep(withinMs, undefined, { signal: time.signal }).catch(() => undefined),
    ]);
    time.abort();
  }

  /** The program resumes or has ended. */
  resumed(): void {
    clearTimeout(this.#longPause);
  }

  /** Never rejects. */
  async #record(calls: readonly OutstandingCall[]): Promise<void> {
    try {
      await this.#recordAll(calls);
    } catch (error) {
      this.#options.onError(error);
    }
  }

  async #recordAll(calls: readonly OutstandingCall[]): Promise<void> {
    const { client, sender, signal } = this.#options;
    await turn();
    // Rejects when the program is gone.
    const record = await client.record(sender, bodyOf(calls), signal).catch(() => undefined);
    if (record === undefined || record.kind === "recorded") return;
    const [first, ...others] = calls as [OutstandingCall];
    if (others.length === 0) this.#deliver(first, record);
    else await Promise.all(calls.map((call) => this.#record([call])));
  }

  /** Never rejects. */
  async #answer(call: OutstandingCall, gone: AbortSignal): Promise<void> {
    const { client, sender, signal } = this.#options;
    const either = AbortSignal.any([signal, gone]);
    const answer = await client.answer(sender, call.callId, call.text, either).catch(() => undefined);
    if (answer !== undefined) this.#deliver(call, answer);
  }

  #deliver(call: OutstandingCall, answer: ToolAnswer): void {
    const { callId, reply } = call;
    if (this.#calls.get(callId) !== call) return;
    if (answer.kind === "unanswered") delete call.wait;
    else this.remove(callId);
    try {
      this.#options.onAnswer(callId, reply, answer);
    } catch (error) {
      this.#options.onError(error);
    }
  }
}

/** Size of a body without calls. `sizeOf` counts a comma for each call, but there is none before the first. */
const AROUND_ALL = '{"calls":[]}'.length - ",".length;

/** Splits calls into batches in their order, each with as many as a body of at most `maxBytes` holds. `tooLarge`: calls that fit into no body. */
export function batchesOf<C extends BatchedCall>(
  calls: Iterable<C>,
  maxBytes: number,
): { batches: C[][]; tooLarge: C[] } {
  const batches: C[][] = [];
  const tooLarge: C[] = [];
  let left = 0;
  for (const call of calls) {
    const size = sizeOf(call);
    if (AROUND_ALL + size > maxBytes) {
      tooLarge.push(call);
      continue;
    }
    const batch = batches.at(-1);
    if (batch === undefined || size > left || batch.length === MAX_RECORDED_CALLS) {
      batches.push([call]);
      left = maxBytes - AROUND_ALL - size;
    } else {
      batch.push(call);
      left -= size;
    }
  }
  return { batches, tooLarge };
}

/** Size of a call in a body, with the comma before it. */
const sizeOf = ({ callId, bytes }: BatchedCall) => entry(callId, "").length + bytes + 1;

export function bodyOf(calls: readonly BatchedCall[]): string {
  return `{"calls":[${calls.map(({ callId, text }) => entry(callId, text)).join(",")}]}`;
}

const entry = (callId: string, text: string) => `{"call_id":${JSON.stringify(callId)},"call":${text}}`;
