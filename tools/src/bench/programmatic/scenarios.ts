/** Programs with tools as scenarios: each is one start and as many resumes as the program has pauses. */
import type { Scenario } from "../scenarios.ts";
import { runProgram, type ToolProgram } from "./driver.ts";

export interface ToolScenario extends Scenario {
  program: ToolProgram;
}

export const isToolScenario = (scenario: Scenario): scenario is ToolScenario => "program" in scenario;

/** Numbers of sequential calls, with their share of the samples. */
const SEQUENTIAL: readonly (readonly [calls: number, share: number])[] = [
  [1, 1],
  [5, 0.5],
  [20, 0.15],
  [50, 0.05],
  [100, 0.025],
  [200, 0.025],
];

/** One call after the other: each has its own round. */
function sequential(calls: number): ToolProgram {
  const code = `total = 0\nfor _ in range(${calls}):\n    total = await add(a=total, b=1)\nprint(total)`;
  return { language: "python", code, expected: `${calls}\n`, calls, rounds: calls };
}

const GATHER: ToolProgram = {
  language: "python",
  code: "print(sum(await asyncio.gather(*[add(a=i, b=1) for i in range(5)])))",
  expected: "15\n",
  calls: 5,
  rounds: 1,
};

const BASH: ToolProgram = {
  language: "bash",
  code: `add '{"a":1,"b":2}'`,
  expected: "3\n",
  calls: 1,
  rounds: 1,
};

function scenario(name: string, about: string, share: number, program: ToolProgram): ToolScenario {
  return { name, about, share, program, run: (client) => runProgram(client, program) };
}

export const TOOL_SCENARIOS: readonly ToolScenario[] = [
  ...SEQUENTIAL.map(([calls, share]) =>
    scenario(
      `calls-${calls}`,
      calls === 1 ? "one call, from the start to the end" : `${calls} calls, one after the other`,
      share,
      sequential(calls),
    ),
  ),
  scenario("gather-5", "five calls at once, answered in one round", 0.5, GATHER),
  scenario("bash-call", "one call from Bash", 0.5, BASH),
];

/** The scenarios that differ only in the number of calls. */
export const BY_CALLS = TOOL_SCENARIOS.filter(({ name }) => name.startsWith("calls-"));
