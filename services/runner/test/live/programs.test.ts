/** Programs with tools on a real runner: every call travels through jail, relay, gateway, tool call server and back. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fail, type ProgramSystem, RAW_CLIENT, startProgramSystem } from "../support/programs.ts";

let system: ProgramSystem;
beforeAll(async () => {
  system = await startProgramSystem();
});
afterAll(() => system?.stop());

const add = ({ tool_input }: { tool_input: unknown }) => {
  const { a, b } = tool_input as { a: number; b: number };
  return a + b;
};

describe("a program with tools", () => {
  it("pauses at each call and goes on with the result", async () => {
    const { rounds, result } = await system.drive(
      `${RAW_CLIENT}
print("before", flush=True)
total = 0
for i in range(5):
    total = call("add", a=total, b=i)
    print("step", i, total, flush=True)
open("out.txt", "w").write(str(total))
print("after")`,
      add,
    );
    expect(rounds.map(({ pending_call_ids }) => pending_call_ids)).toEqual(
      [1, 2, 3, 4, 5].map((n) => [`call_00${n}`]),
    );
    expect(rounds[2]?.stdout).toBe("before\nstep 0 0\nstep 1 1\n");
    expect(result.stdout).toBe("before\nstep 0 0\nstep 1 1\nstep 2 3\nstep 3 6\nstep 4 10\nafter\n");
    expect(result).toMatchObject({ code: 0, status: null, stderr: "", tool_calls_made: 5 });
    expect(result.files.map(({ name }) => name)).toEqual(["out.txt"]);
    expect(result.execution_time).toBeGreaterThan(0);
  });
});
