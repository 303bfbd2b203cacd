import { parserFor } from "@svc/cli/commands";
import { SHELLS } from "@svc/cli/completion";
import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../src/commands.ts";

const namesIn = async (more: typeof COMMANDS) =>
  (await parserFor(undefined, [], more)).commands.map((command) => command.name());

describe("the commands of a working copy", () => {
  test("are those of an operator and the project's own", async () => {
    expect(await namesIn({})).toEqual(["up", "down", "exec", "doctor", "install", "uninstall", "completion"]);
    expect(await namesIn(COMMANDS)).toEqual([
      "up",
      "down",
      "exec",
      "doctor",
      "install",
      "uninstall",
      "test",
      "bench",
      "completion",
    ]);
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
    const { commands } = await parserFor(undefined, [], COMMANDS);
    expect(SHELLS.bash?.(commands)).toContain(
      "'up down exec doctor install uninstall test bench completion'",
    );
  });
});
