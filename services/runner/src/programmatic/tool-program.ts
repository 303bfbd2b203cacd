/**
 * One program with tools on this runner, from its start to its end: the jail, the tool socket beside it, and the calls
 * between them. It runs in rounds: each ends when the program pauses or ends. Between rounds it is frozen. Its calls reach
 * the gateway even when the program closes the connection that it made them over.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { CallAnswer, PausedCall, ProgrammaticFault, RecordedCall } from "@svc/contracts";
import { ServiceError } from "@svc/contracts";
import { JailError, type JailRun, type RunOutcome, type RunPause } from "@svc/jail-client";
import { Condition } from "@svc/service-kit";
import type { Launched } from "../execution/launch.ts";
import type { CountedExecution } from "../metrics.ts";
import type { CallHistory } from "./call-history.ts";
import { OutstandingCalls } from "./outstanding-calls.ts";
import { batchIsComplete, nextCheckMs, type QuiescenceTimes } from "./quiescence.ts";
import { type CallReply, Relay } from "./relay.ts";
import type { ToolAnswer, ToolCallClient } from "./tool-call-client.ts";
import type { ToolDirectories, ToolDirectory } from "./tool-directory.ts";
import type { ToolCall } from "./tool-request.ts";

/** Connections beyond the calls that may be outstanding. */
const SPARE_CONNECTIONS = 56;
/** Limit of the arguments that one program may have outstanding, in calls of the largest size. */
const MAX_OUTSTANDING = 16;
/** How long recording the calls of a killed program may still take. */
const RECORDING_MS = 15_000;
/** How long the answer of a program that ended waits until its last calls are recorded. */
const LAST_RECORDS_MS = 2000;
/** For this time after a call, a running program is checked again at once. */
const AT_ONCE_MS = 1;
/** Run time left to a frozen program that must end. */
const LAST_MS = 1;

export interface ToolProgramOptions {
  executionId: string;
  /** The program's owner; opaque. */
  principal: string;
  round: number;
  requestId: string;
  callbackToken: string;
  tools: readonly string[];
  files: Readonly<Record<string, string>>;
  history: CallHistory;
  maxCalls: number;
  maxCallBytes: number;
  quiescence: QuiescenceTimes;
  directories: ToolDirectories;
  client: ToolCallClient;
  counted: CountedExecution;
}

export class ToolProgram {
  readonly executionId: string;
  readonly principal: string;
  /** The current round, or the latest one. */
  round: number;
  pausedAtMs = 0;
  memoryBytes = 0;
  fault: ProgrammaticFault | undefined;
  readonly counted: CountedExecution;
  /** Called when the calls of a paused program are refused for good. */
  onUnanswerable: (() => void) | undefined;
  readonly #options: ToolProgramOptions;
  readonly #history: CallHistory;
  readonly #relay: Relay;
  readonly #changed = new Condition();
  /** Aborted: the jail is gone. */
  readonly #life = new AbortController();
  /** Aborted: no call is sent any more. */
  readonly #calls = new AbortController();
  #directory: ToolDirectory | undefined;
  #launched: Launched | undefined;
  #outcome: RunOutcome | undefined;
  #pause: RunPause | undefined;
  #failure: unknown;
  readonly #outstanding: OutstandingCalls;
  #firstCallMs = 0;
  #activityMs = 0;

  constructor(options: ToolProgramOptions) {
    const { executionId, round, requestId, counted, history, tools, maxCallBytes, maxCalls } = options;
    this.executionId = executionId;
    this.principal = options.principal;
    this.round = round;
    this.counted = counted;
    this.#options = options;
    this.#history = history;
    this.#relay = new Relay({
      tools,
      maxBytes: maxCallBytes,
      maxArrivingBytes: MAX_OUTSTANDING * maxCallBytes,
      maxConnections: maxCalls + SPARE_CONNECTIONS,
      onCall: (call, reply) => this.#call(call, reply),
      onActivity: () => {
        this.#activityMs = performance.now();
      },
      onError: (error) => this.kill(error),
    });
    this.#outstanding = new OutstandingCalls({
      client: options.client,
      sender: { token: options.callbackToken, executionId, requestId },
      maxBytes: maxCallBytes,
      signal: this.#calls.signal,
      onAnswer: (callId, reply, answer) => this.#answered(callId, reply, answer),
      onError: (error) => this.kill(error),
    });
  }

  get life(): AbortSignal {
    return this.#life.signal;
  }

  /** Puts the tools into the slot of the jail; before the program starts. */
  async prepare({ slot, isGone }: Pick<JailRun, "slot" | "isGone">): Promise<void> {
    const { directories, files } = this.#options;
    if (isGone) throw new JailError("gone", false, "the jail ended before its tools were there");
    const directory = directories.claim(slot, files);
    directory.onRelease = () => this.#relay.close();
    this.#directory = directory;
    await this.#relay.listen(directory.socketPath);
  }

  started(launched: Launched): void {
    this.#launched = launched;
    launched.jail.outcome().then(
      (outcome) => {
        this.#outcome = outcome;
        this.#changed.notify();
      },
      (error: unknown) => this.kill(error),
    );
  }

  get launched(): Launched {
    if (this.#launched === undefined) throw new Error("the program was not started");
    return this.#launched;
  }

  get outcome(): RunOutcome | undefined {
    return this.#outcome;
  }

  /** What the program has written and used until now. Available once it waits or has ended. */
  get sofar(): Pick<RunPause, "wallUs" | "stdoutTotal" | "stderrTotal" | "stdout" | "stderr"> {
    const outcome = this.#outcome;
    if (outcome !== undefined) return { ...outcome.end, stdout: outcome.stdout, stderr: outcome.stderr };
    if (this.#pause === undefined) throw new Error("the program is running");
    return this.#pause;
  }

  get outstanding(): string[] {
    return this.#history.outstanding;
  }

  /** The outstanding calls themselves, unless they are large. */
  get outstandingCalls(): PausedCall[] | undefined {
    return this.#outstanding.reported(this.#history.outstanding);
  }

  get callsMade(): number {
    return this.#history.made;
  }

  /** Lets the program run until its caller must answer calls, or to its end. At the end, waits briefly until all its calls are charged. */
  async run(): Promise<"waits" | "ended"> {
    const how = await this.#run();
    if (how === "ended") await this.#outstanding.recorded(LAST_RECORDS_MS);
    return how;
  }

  async #run(): Promise<"waits" | "ended"> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.fault !== undefined) return this.#end();
      if (this.#outcome !== undefined) return this.#atEnd(this.#outcome);
      if (!this.#history.hasOutstanding) await this.#changed.wait();
      else if (await this.#pauseIfComplete()) return this.#waits();
      else await this.#untilNextCheck();
    }
  }

  /** Sends the calls of a complete batch on to the gateway. */
  #waits(): "waits" {
    this.#outstanding.paused();
    if (this.#life.signal.aborted) this.#outstanding.resumed();
    return "waits";
  }

  /** Hands the program the results that came with its resume. */
  answer(answers: readonly CallAnswer[]): void {
    for (const { call_id, outcome } of answers) {
      if (!this.#history.isOutstanding(call_id)) continue;
      const reply = this.#outstanding.remove(call_id);
      if (reply === undefined) continue;
      sendReply(reply, call_id, outcome);
      this.#history.answered(call_id);
    }
  }

  /**
   * Waits until the results of these calls have come and were handed to the program, or until the program is at fault. A fault ends the program
   * when it goes on. False: the results did not come in time.
   */
  async haveResults(callIds: readonly string[], withinMs: number): Promise<boolean> {
    const untilMs = performance.now() + withinMs;
    // A program that has ended reads no results.
    if (this.#outcome !== undefined) for (const id of callIds) this.#history.answered(id);
    this.#outstanding.awaitResults(callIds.filter((id) => this.#history.isOutstanding(id)));
    while (this.fault === undefined && callIds.some((id) => this.#history.isOutstanding(id))) {
      if (this.#failure !== undefined) throw this.#failure;
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return false;
      await this.#changed.wait({ ms: leftMs });
    }
    await turn();
    return true;
  }

  /** Begins the next round of a paused program: it may run for `wallMs`. */
  resume(wallMs: number): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.round++;
    this.#outstanding.resumed();
    this.#firstCallMs = this.#activityMs = performance.now();
    if (this.#outcome === undefined) this.#thaw(wallMs);
  }

  /** Resolves when the calls of a pause are recorded, or after RECORDING_MS. */
  recorded(): Promise<void> {
    return this.#outstanding.recorded(RECORDING_MS);
  }

  /** Ends the program and its calls; never throws. Calls on their way may still be recorded. */
  kill(reason: unknown): void {
    this.#failure ??= reason;
    this.#releaseSlot();
    this.#life.abort(reason);
    this.#launched?.jail.close();
    setTimeout(() => this.#calls.abort(), RECORDING_MS).unref();
    this.#changed.notify();
  }

  /** The program has ended and its files are stored. */
  close(): void {
    this.#releaseSlot();
    this.#launched?.jail.close();
    this.#calls.abort();
  }

  /** Removes the tools from the slot, which belongs to another run as soon as the jail is gone. */
  #releaseSlot(): void {
    this.#outstanding.resumed();
    this.#relay.close();
    this.#directory?.release();
  }

  /** Checks the program and stops it if its batch is complete. */
  async #pauseIfComplete(): Promise<boolean> {
    const { jail } = this.launched;
    const { events, replies, arriving, isSending } = this.#relay;
    if (isSending) return false;
    const state = await (arriving ? jail.query() : jail.pauseIfBlocked());
    if (state === undefined) return false;
    if (typeof state === "object") return this.#staysStopped(state, replies);
    if (!(await this.#relay.isQuiet(events))) return false;
    const isComplete = batchIsComplete(
      {
        state,
        nowMs: performance.now(),
        firstCallMs: this.#firstCallMs,
        activityMs: this.#activityMs,
        arriving: this.#relay.arriving,
        unused: this.#history.unused,
      },
      this.#options.quiescence,
    );
    return isComplete && this.#freeze();
  }

  async #untilNextCheck(): Promise<void> {
    const nowMs = performance.now();
    // The program is about to wait for its answer, which takes less time than a timer.
    if (nowMs - this.#activityMs < AT_ONCE_MS) await turn();
    else await this.#changed.wait({ ms: nextCheckMs({ nowMs, activityMs: this.#activityMs }) });
  }

  /** For a program that was blocked when it was stopped. It runs again if a reply was sent meanwhile, or a part of a call has come. */
  async #staysStopped(pause: RunPause, replies: number): Promise<boolean> {
    this.#pause = pause;
    await this.#relay.freeze();
    if (this.fault === undefined && (this.#relay.replies !== replies || this.#relay.arriving)) {
      this.#thaw(0);
      return false;
    }
    return this.#keeps(pause);
  }

  /** Stops the program; false when it has ended, is at fault, or needs no answer after all. */
  async #freeze(): Promise<boolean> {
    const pause = await this.launched.jail.pause();
    if (pause === undefined) return false;
    this.#pause = pause;
    await this.#relay.freeze();
    return this.#keeps(pause);
  }

  #keeps(pause: RunPause): boolean {
    this.#relay.flush();
    if (this.fault === undefined && !this.#history.hasOutstanding) this.#thaw(0);
    else if (this.#history.unused > 0) this.fault ??= { type: "replay_diverged" };
    if (this.#pause === undefined || this.fault !== undefined) return false;
    this.memoryBytes = pause.memory + this.#relay.arrivingBytes + this.#outstanding.bytes;
    return true;
  }

  #thaw(wallMs: number): void {
    this.#pause = undefined;
    this.#relay.thaw();
    this.launched.jail.resume(wallMs);
  }

  /** The program has ended. If it ended by itself, the calls that it made before still go to its caller; after a limit they do not. */
  async #atEnd({ end, listing }: RunOutcome): Promise<"waits" | "ended"> {
    await this.#relay.freeze();
    this.#relay.flush();
    if (this.fault !== undefined) return "ended";
    if (end.cause !== "exited" && end.cause !== "signaled") return "ended";
    if (this.#history.unused > 0) this.fault = { type: "replay_diverged" };
    if (this.fault !== undefined || !this.#history.hasOutstanding) return "ended";
    // An upper bound of what it holds now: its peak, plus the staged files, which the peak does not count.
    const inputs = listing.files.filter(({ input }) => input !== undefined);
    this.memoryBytes = inputs.reduce((sum, { size }) => sum + size, end.memoryPeak);
    return this.#waits();
  }

  /** Ends a program that is at fault; its output until now counts. */
  async #end(): Promise<"ended"> {
    const { jail } = this.launched;
    if (this.#outcome === undefined && this.#pause === undefined) this.#pause = await jail.pause();
    if (this.#pause !== undefined) jail.resume(LAST_MS);
    while (this.#outcome === undefined) {
      if (this.#failure !== undefined) throw this.#failure;
      await this.#changed.wait();
    }
    return "ended";
  }

  #call(call: ToolCall, reply: CallReply): void {
    if (this.fault !== undefined) return;
    const { maxCallBytes } = this.#options;
    const bytes = Buffer.byteLength(call.text);
    if (bytes > maxCallBytes) {
      reply.refuse(413, "the arguments are too large");
      return;
    }
    if (this.#outstanding.bytes + bytes > MAX_OUTSTANDING * maxCallBytes) {
      reply.refuse(503, "too many large tool calls are waiting for their results");
      return;
    }
    const isFirst = !this.#history.hasOutstanding;
    const issued = this.#history.issue(call.name, call.input);
    this.#activityMs = performance.now();
    // A recorded call is answered at once and the program goes on, so its batch begins anew.
    if (isFirst || issued.kind === "recorded") this.#firstCallMs = this.#activityMs;
    if (issued.kind === "fault") this.fault = issued.fault;
    else if (issued.kind === "recorded") sendReply(reply, issued.callId, issued.outcome);
    else this.#outstanding.add(issued.callId, call, bytes, reply);
    this.#changed.notify();
  }

  /** Handles the gateway's answer to a call. */
  #answered(callId: string, reply: CallReply, answer: ToolAnswer): void {
    if (answer.kind === "unanswered") return;
    if (answer.kind === "refused") this.#unanswerable(answer.status);
    else if (answer.kind === "spent") this.fault ??= { type: "tool_limit" };
    else {
      const { kind: _, ...outcome } = answer;
      sendReply(reply, callId, outcome);
      this.#history.answered(callId);
    }
    this.#changed.notify();
  }

  #unanswerable(status: number): void {
    if (this.#failure !== undefined) return;
    const reason = new ServiceError("sandbox_execution_failed", undefined, {
      status: 500,
      cause: `a tool call was refused: ${status}`,
    });
    if (this.onUnanswerable === undefined) this.kill(reason);
    else this.onUnanswerable();
  }
}

function sendReply(reply: CallReply, callId: string, outcome: NonNullable<RecordedCall["outcome"]>): void {
  if ("result_json" in outcome) reply.result(callId, outcome.result_json);
  else reply.failure(callId, outcome.error_message);
}
