/**
 * Programs with tools as their caller drives them, for tests: started, answered by given functions at every pause, until
 * they end. Knows nothing of the system behind the address.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ProgrammaticResponse, ToolCallRequired, ToolDeclaration, ToolResult } from "@svc/contracts";
import { slow } from "../jail/slowness.ts";
import type { Answer, Api, SendOptions } from "./api.ts";

const PATH = "/exec/programmatic";
const AGAIN_MS = 200;
const SERVED_WITHIN_MS = slow(60_000);

// biome-ignore lint/suspicious/noExplicitAny: a tool's own test knows what its arguments are
export type Input = any;
export type Call = ToolCallRequired["tool_calls"][number];
export type Ended = Exclude<ProgrammaticResponse, ToolCallRequired>;
/** What answers the calls of a tool; what it throws is the tool's failure. */
export type Tools = Readonly<Record<string, (input: Input, call: Call) => unknown>>;
/** The body of a start as a test writes it: anything, so that wrong requests can be sent too. */
export type Start = Readonly<Record<string, unknown>>;
export type Options = Omit<SendOptions, "body">;

export interface Drive extends Options {
  /** Declared tools, where names and any arguments are not enough. */
  declared?: readonly ToolDeclaration[];
  /** What happens while the program is paused, counted from 1. */
  between?: (paused: ToolCallRequired, pause: number) => unknown;
}

export interface Driven {
  answer: Ended;
  pauses: ToolCallRequired[];
  /** Names of the calls of each pause. */
  batches: string[][];
}

export const declare = (names: Iterable<string>): ToolDeclaration[] => [...names].map((name) => ({ name }));

export const tryStart = (api: Api, start: Start, options: Options = {}): Promise<Answer> =>
  api.post(PATH, start, options);

export const tryResume = (
  api: Api,
  continuation_token: string,
  tool_results: unknown,
  options: Options = {},
): Promise<Answer> => api.post(PATH, { continuation_token, tool_results }, options);

/** The answers of the given functions to the calls of a pause. */
export function resultsOf(calls: readonly Call[], tools: Tools): ToolResult[] {
  return calls.map((call) => {
    try {
      const result = tools[call.name]?.(call.input, call);
      return { call_id: call.id, ...(result === undefined ? {} : { result }) };
    } catch (error) {
      return { call_id: call.id, is_error: true, error_message: (error as Error).message };
    }
  });
}

/** Sends it until it is served: a 503 says that the same request may be sent again. Throws for any other failure. */
export async function served(send: () => Promise<Answer>): Promise<ProgrammaticResponse> {
  for (const began = performance.now(); ; await sleep(AGAIN_MS)) {
    const answer = await send();
    if (answer.status !== 503 || performance.now() - began > SERVED_WITHIN_MS) {
      return answer.ok<ProgrammaticResponse>();
    }
  }
}

/** Starts a program; it must pause. */
export async function startPaused(api: Api, start: Start, options: Options = {}): Promise<ToolCallRequired> {
  const answer = await served(() => tryStart(api, start, options));
  if (answer.status !== "tool_call_required") throw new Error(`not paused: ${JSON.stringify(answer)}`);
  return answer;
}

/** Answers a paused program until it ends. */
export async function driveOn(
  api: Api,
  from: ProgrammaticResponse,
  tools: Tools,
  { between, declared: _, ...options }: Drive = {},
): Promise<Driven> {
  const pauses: ToolCallRequired[] = [];
  let answer = from;
  while (answer.status === "tool_call_required") {
    const paused = answer;
    pauses.push(paused);
    await between?.(paused, pauses.length);
    const results = resultsOf(paused.tool_calls, tools);
    answer = await served(() => tryResume(api, paused.continuation_token, results, options));
  }
  return { answer, pauses, batches: pauses.map(({ tool_calls }) => tool_calls.map(({ name }) => name)) };
}

/** Runs a program from its start to its end. */
export async function drive(api: Api, start: Start, tools: Tools, how: Drive = {}): Promise<Driven> {
  const { between: _, declared = declare(Object.keys(tools)), ...options } = how;
  const first = await served(() => tryStart(api, { tools: declared, ...start }, options));
  return driveOn(api, first, tools, how);
}
