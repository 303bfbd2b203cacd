/** Runs programs that call functions of the caller. Answers each pause, with all its calls in parallel, until the program has ended. */
import type { ProgrammaticResponse, ToolCallRequired } from "./api.generated.ts";
import { eventsOf, type RunningEvent } from "./events.ts";
import type { CallOptions, Http } from "./http.ts";
import { bodyOf, type ToolProgram } from "./inputs.ts";
import { type ToolResult, withFiles } from "./results.ts";

type Arguments = Record<string, unknown>;

export interface Tool {
  description?: string;
  /** JSON Schema of the arguments. */
  parameters?: object;
  /** What it throws becomes an error in the program. `signal` is the signal of the run. */
  run: (input: Arguments, context: { signal: AbortSignal | undefined }) => unknown;
}

export type Tools = Readonly<Record<string, Tool | Tool["run"]>>;

export type ToolEvent =
  | RunningEvent
  | { type: "call"; id: string; name: string; input: Arguments }
  | { type: "result"; result: ToolResult };

interface Answer {
  call_id: string;
  result?: unknown;
  is_error?: true;
  error_message?: string;
}

/** The request of one round. A resume waits out rate limits, because the paused program would be lost with a failed resume. */
interface Round {
  body: string;
  waitsOutLimits: boolean;
}

const PATH = "/exec/programmatic";
/** Maximum characters of the message of an error that a function throws. A message that is too large would end the program. */
const MAX_MESSAGE_CHARS = 4096;

export class WithTools {
  readonly #http: Http;
  readonly #tools: ReadonlyMap<string, Tool>;

  constructor(http: Http, tools: Tools) {
    this.#http = http;
    this.#tools = new Map(
      Object.entries(tools).map(([name, tool]) => [name, typeof tool === "function" ? { run: tool } : tool]),
    );
  }

  /** Runs a program and returns how it ended. Aborting the signal ends the program, even while it is paused. */
  async run(program: ToolProgram, options: CallOptions = {}): Promise<ToolResult> {
    for await (const event of this.#rounds(program, options, false)) {
      if (event.type === "result") return event.result;
    }
    throw new TypeError("a program has no result");
  }

  /** Like `run`, with the output of the program while it runs, and the calls that it makes. */
  stream(program: ToolProgram, options: CallOptions = {}): AsyncGenerator<ToolEvent, void> {
    return this.#rounds(program, options, true);
  }

  async *#rounds(
    program: ToolProgram,
    options: CallOptions,
    isStreamed: boolean,
  ): AsyncGenerator<ToolEvent, void> {
    const label = crypto.randomUUID();
    const tools = [...this.#tools].map(([name, { description, parameters }]) => ({
      name,
      description,
      parameters,
    }));
    let hasEnded = false;
    try {
      let round: Round = { body: bodyOf(program, { tools }), waitsOutLimits: false };
      for (;;) {
        const answer = yield* this.#round(round, label, options, isStreamed);
        if (answer.status !== "tool_call_required") {
          hasEnded = true;
          yield { type: "result", result: withFiles(answer, this.#http) as ToolResult };
          return;
        }
        for (const { id, name, input } of answer.tool_calls) yield { type: "call", id, name, input };
        const tool_results = await this.#answers(answer, options.signal);
        const body = JSON.stringify({ continuation_token: answer.continuation_token, tool_results });
        round = { body, waitsOutLimits: true };
      }
    } finally {
      // A paused program would wait for its caller, and a resumed one would go on without its caller.
      if (!hasEnded) this.#cancel(label);
    }
  }

  async *#round(
    round: Round,
    label: string,
    options: CallOptions,
    isStreamed: boolean,
  ): AsyncGenerator<ToolEvent, ProgrammaticResponse> {
    const headers = {
      "content-type": "application/json",
      "x-librechat-code-request-id": label,
      ...(isStreamed ? { accept: "text/event-stream" } : {}),
    };
    const request = { method: "POST", path: PATH, headers, ...round, ...options } as const;
    if (!isStreamed) return this.#http.json(request);
    for await (const event of eventsOf<ProgrammaticResponse>(
      await this.#http.send(request),
      options.signal,
    )) {
      if (event.type === "answer") return event.answer;
      yield event;
    }
    throw new TypeError("a round has no answer");
  }

  async #answers({ tool_calls }: ToolCallRequired, signal: AbortSignal | undefined): Promise<Answer[]> {
    let end = () => {};
    const ended = new Promise<never>((_, reject) => {
      end = () => reject(signal?.reason);
    });
    ended.catch(() => undefined);
    if (signal?.aborted) end();
    signal?.addEventListener("abort", end, { once: true });
    try {
      return await Promise.race([
        ended,
        Promise.all(tool_calls.map(({ id, name, input }) => this.#answer(id, name, input, signal))),
      ]);
    } finally {
      signal?.removeEventListener("abort", end);
    }
  }

  async #answer(
    call_id: string,
    name: string,
    input: Arguments,
    signal: AbortSignal | undefined,
  ): Promise<Answer> {
    try {
      const tool = this.#tools.get(name);
      if (tool === undefined) throw new Error(`there is no tool ${name}`);
      return { call_id, result: jsonOf(name, (await tool.run(input, { signal })) ?? null) };
    } catch (error) {
      return { call_id, is_error: true, error_message: sentenceOf(error).slice(0, MAX_MESSAGE_CHARS) };
    }
  }

  #cancel(request_id: string): void {
    this.#http
      .send({
        method: "POST",
        path: `${PATH}/cancel`,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ request_id }),
      })
      .catch(() => undefined);
  }
}

/** Returns the value unchanged. Throws if it is not JSON, so that only this call fails and the program goes on. */
function jsonOf(name: string, value: unknown): unknown {
  try {
    if (JSON.stringify(value) !== undefined) return value;
  } catch (cause) {
    throw new TypeError(`the result of ${name} is not JSON: ${sentenceOf(cause)}`, { cause });
  }
  throw new TypeError(`the result of ${name} is not JSON`);
}

const sentenceOf = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error);
