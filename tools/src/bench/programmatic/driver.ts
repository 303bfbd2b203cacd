/** Drives programs with tools as their caller does: sends a start, answers every call, until the program has ended. */
import type { LoadClient } from "../load-client.ts";

const PATH = "/exec/programmatic";

export interface ToolCall {
  id: string;
  input: { a: number; b: number };
}

/** A program that waits for its caller. */
export interface Paused {
  status: "tool_call_required";
  continuation_token: string;
  tool_calls: readonly ToolCall[];
}

interface Ended {
  status: "completed" | "error";
  stdout?: string;
  tool_calls_made?: number;
}

type Answer = Paused | Ended;

const TOOLS = [
  {
    name: "add",
    description: "Adds two numbers.",
    parameters: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
  },
];

export interface ToolProgram {
  language: "python" | "bash";
  code: string;
  /** The output of the program when every call got its sum. */
  expected: string;
  calls: number;
  rounds: number;
}

/** Starts a program that calls tools; throws unless it waits for its caller then. */
export async function startProgram(client: LoadClient, { language, code }: ToolProgram): Promise<Paused> {
  const answer = (await client.json(PATH, { language, code, tools: TOOLS })) as Answer;
  if (answer.status !== "tool_call_required") {
    throw new Error(`no call came: ${JSON.stringify(answer).slice(0, 500)}`);
  }
  return answer;
}

/** Answers its calls until it has ended; throws unless it ended as expected, in as many rounds as expected. */
export async function finishProgram(client: LoadClient, program: ToolProgram, from: Paused): Promise<void> {
  let answer: Answer = from;
  let rounds = 0;
  for (; answer.status === "tool_call_required"; rounds++) {
    answer = (await client.json(PATH, {
      continuation_token: answer.continuation_token,
      tool_results: answer.tool_calls.map(({ id, input }) => ({ call_id: id, result: input.a + input.b })),
    })) as Answer;
  }
  const isRight = answer.status === "completed" && answer.stdout === program.expected;
  if (!isRight || answer.tool_calls_made !== program.calls || rounds !== program.rounds) {
    throw new Error(`unexpected end after ${rounds} rounds: ${JSON.stringify(answer).slice(0, 500)}`);
  }
}

export async function runProgram(client: LoadClient, program: ToolProgram): Promise<void> {
  await finishProgram(client, program, await startProgram(client, program));
}
