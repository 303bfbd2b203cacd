/** The image's own preludes over the real way of a tool call. */
import type { Tool } from "@svc/contracts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fail, type ProgramSystem, startProgramSystem } from "../support/programs.ts";

let system: ProgramSystem;
beforeAll(async () => {
  system = await startProgramSystem({ preludes: true });
});
afterAll(() => system?.stop());

const parameters = { type: "object", properties: { a: {}, b: {} }, required: ["a"] };
const tools: Tool[] = [
  { name: "add", description: 'Adds """ two', parameters_json: JSON.stringify(parameters) },
  { name: "look-up" },
];
const tool = ({ tool_name, tool_input }: { tool_name: string; tool_input: unknown }) => {
  const { a, b } = tool_input as { a: number; b: number };
  return tool_name === "add" ? a + b : fail("nothing there");
};
const drive = (code: string, language: string) => system.drive(code, tool, { tools, language });

describe("a Python program", () => {
  it("calls its tools one after another, all at once, and lives with failures", async () => {
    const { rounds, result } = await drive(
      `total = 0
for i in range(3):
    total = await add(a=total, b=i)
values = await asyncio.gather(*[add(a=i, b=1) for i in range(50)])
try:
    await look_up()
except ToolExecutionError as error:
    print("failed:", error)
print(total, sum(values))`,
      "python",
    );
    expect(result).toMatchObject({ stdout: "failed: nothing there\n3 1275\n", stderr: "", code: 0 });
    expect(rounds.map(({ pending_call_ids }) => pending_call_ids.length)).toEqual([1, 1, 1, 50, 1]);
  });

  it("keeps its recursion limit where the thread for deep arguments cannot be started", async () => {
    const { result } = await drive(
      `import sys, threading
def refuse(self):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
limit, value = sys.getrecursionlimit(), []
for _ in range(50_000):
    value = [value]
try:
    await add(a=value)
except RuntimeError as error:
    print(error, sys.getrecursionlimit() == limit)`,
      "python",
    );
    expect(result).toMatchObject({ stdout: "can't start new thread True\n", stderr: "" });
  });

  it("has its result before the time it waits for it is over", async () => {
    const { result } = await drive(
      `print(await asyncio.wait_for(add(a=1, b=2), 0.5))
async def late():
    await asyncio.sleep(0.05)
    return await add(a=3, b=4)
print(await asyncio.gather(late(), add(a=1, b=1)))`,
      "python",
    );
    expect(result).toMatchObject({ stdout: "3\n[7, 2]\n", stderr: "" });
  });
});

describe("a Bash program", () => {
  it("calls its tools in substitutions, in the background, and lives with failures", async () => {
    const { rounds, result } = await drive(
      `set -euo pipefail
x=$(add '{"a":1,"b":2}')
for i in 1 2 3; do add "{\\"a\\":$i,\\"b\\":$x}" > "out$i" & done
wait
cat out1 out2 out3
look_up || echo "failed: $?"`,
      "bash",
    );
    expect(result).toMatchObject({ stdout: "4\n5\n6\nfailed: 1\n", stderr: "nothing there\n", code: 0 });
    expect(rounds.map(({ pending_call_ids }) => pending_call_ids.length)).toEqual([1, 3, 1]);
  });
});
