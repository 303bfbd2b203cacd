/** Programs with tools whose callers read events: each round tells what is new in it, whether the program is kept or run again. */
import type { ProgrammaticResponse, ToolCallRequired } from "@svc/contracts";
import type { Api } from "@svc/test-kit/system/api";
import { joined, namesOf, openStream, resultOf } from "@svc/test-kit/system/streams";
import { describe, expect, test } from "vitest";
import { useSystemOfMode } from "./support/use-system.ts";

const PATH = "/exec/programmatic";
const TOOLS = [{ name: "ask" }];
const CODE = `import sys
print("one é")
print("err", file=sys.stderr)
for at in range(3):
  sys.stdout.buffer.write(b"half \\xe2\\x82")
  print("before", at)
  print("after", await ask(at=at))
open("made.txt", "w").write("1")`;

describe.each(["live", "replay"] as const)("%s", (mode) => {
  let api: Api;
  useSystemOfMode(mode, (made) => {
    api = made;
  });

  test("joined, the outputs of all rounds are those of the program", async () => {
    const told = { stdout: "", stderr: "" };
    let body: object = { code: CODE, tools: TOOLS };
    for (let round = 0; ; round++) {
      const events = await (await openStream(api.url, PATH, body)).all();
      expect(events[0]?.event).toBe("started");
      told.stdout += joined(events, "stdout");
      told.stderr += joined(events, "stderr");
      const result = resultOf<ProgrammaticResponse>(events);
      if (result.status !== "tool_call_required") {
        expect(result).toMatchObject({ status: "completed", stdout: told.stdout, stderr: told.stderr });
        expect(namesOf(events).slice(-2)).toEqual(["file", "result"]);
        expect(round).toBe(3);
        break;
      }
      expect(result).toMatchObject({ partial_stdout: told.stdout, partial_stderr: told.stderr });
      body = answers(result);
    }
    expect(told.stdout.match(/one/g)).toHaveLength(1);
    expect(told.stderr).toBe("err\n");
  });

  test("a round may be read as one answer, and the next one as events", async () => {
    const started = await api.post(PATH, { code: CODE, tools: TOOLS });
    const paused = started.ok<ToolCallRequired>();
    const events = await (await openStream(api.url, PATH, answers(paused))).all();
    expect(paused.partial_stdout + joined(events, "stdout")).toBe(
      resultOf<ToolCallRequired>(events).partial_stdout,
    );
  });

  test("a repeated resume gives the result alone", async () => {
    const started = await api.post(PATH, { code: CODE, tools: TOOLS });
    const body = answers(started.ok<ToolCallRequired>());
    const first = await (await openStream(api.url, PATH, body)).all();
    const again = await (await openStream(api.url, PATH, body)).all();
    expect(first.length).toBeGreaterThan(2);
    expect(again).toEqual([first.at(-1)]);
  });
});

const answers = ({ continuation_token, tool_calls }: ToolCallRequired) => ({
  continuation_token,
  tool_results: tool_calls.map(({ id }) => ({ call_id: id, result: "é" })),
});
