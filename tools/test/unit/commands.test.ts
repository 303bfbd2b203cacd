import { parserFor } from "@svc/cli/commands";
import { SHELLS } from "@svc/cli/completion/shells";
import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../src/commands.ts";

const namesIn = async (more: typeof COMMANDS) =>
  (await parserFor(undefined, [], more)).commands.map((command) => command.name());

describe("the commands of a working copy", () => {
  test("are the operator's and the project's own", async () => {
    const operators = await namesIn({});
    expect(operators).toEqual(expect.arrayContaining(["up", "down", "exec", "doctor", "completion"]));
    expect(await namesIn(COMMANDS)).toEqual([...operators, "test", "bench", "scaling"]);
  });

  test("are listed under a heading of their own, after all others", async () => {
    const help = (await parserFor(undefined, [], COMMANDS)).helpInformation();
    expect(help).toMatch(
      /\nCommands:\n(?: .*\n)+\nFor developers:\n {2}test .*\n(?: .*\n)* {2}bench .*\n(?: .*\n)*$/,
    );
  });

  test("are loaded one by one, and unknown ones are told of", async () => {
    expect((await parserFor("bench", [], COMMANDS)).commands.map((command) => command.name())).toEqual([
      "bench",
    ]);
    await expect(
      (await parserFor("tset", [], COMMANDS)).parseAsync(["tset"], { from: "user" }),
    ).rejects.toThrow("unknown command tset; did you mean test?");
  });

  test("are completed", async () => {
    expect(SHELLS.bash?.(await parserFor(undefined, [], COMMANDS))).toMatch(
      /'up .* completion test bench scaling'/,
    );
  });
});
