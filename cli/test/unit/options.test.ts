import { Command, CommanderError } from "commander";
import { describe, expect, it } from "vitest";
import { defineCommand } from "../../src/command.ts";
import { parserFor } from "../../src/commands.ts";
import { parseOptions, strict, wholeNumber } from "../../src/options.ts";

const OPTIONS = {
  detach: { short: "d", doc: "Background." },
  lang: { short: "l", value: "LANG", doc: "Language." },
  in: { value: "FILE", many: true, doc: "Input." },
} as const;

describe("parseOptions", () => {
  it("reads switches, values in both forms and repeated values", () => {
    const { values, positionals } = parseOptions(
      ["-d", "a.py", "--lang=py", "--in", "x", "--in=y=z"],
      OPTIONS,
    );
    expect(values).toEqual({ detach: true, lang: "py", in: ["x", "y=z"] });
    expect(positionals).toEqual(["a.py"]);
  });

  it("gives absent options their empty value", () => {
    expect(parseOptions([], OPTIONS).values).toEqual({ detach: false, lang: undefined, in: [] });
  });

  it("takes everything after -- as it is, options and all", () => {
    const { values, rest } = parseOptions(["--", "-d", "--nope"], OPTIONS);
    expect(rest).toEqual(["-d", "--nope"]);
    expect(values.detach).toBe(false);
  });

  it("takes a single dash as a positional", () => {
    expect(parseOptions(["-"], OPTIONS).positionals).toEqual(["-"]);
  });

  it.each([
    ["--detahc", /unknown option --detahc; did you mean --detach\?/],
    ["--detach=1", /--detach takes no value/],
    ["--lang", /--lang needs a value/],
    ["-x", /unknown option -x/],
  ])("refuses %s", (argument, message) => {
    expect(() => parseOptions([argument], OPTIONS)).toThrow(message);
  });

  it("does not take a name of Object's prototype for an option", () => {
    expect(() => parseOptions(["--constructor"], OPTIONS)).toThrow(/unknown option/);
  });
});

/** Runs a command line; answers what it was called with, or the help that it printed. */
async function run(argv: string[], rest: string[] = []): Promise<unknown> {
  let result: unknown;
  let help = "";
  const program = strict(new Command("./svc")).configureOutput({ writeOut: (text) => (help += text) });
  const command = defineCommand({
    usage: "go [NAME]",
    positionals: "[NAME]",
    summary: "Goes.",
    details: "Exit codes: 7.",
    options: { ...OPTIONS, "no-example": { doc: "Without it." } },
    run: async (parsed) => {
      result = parsed;
      return 0;
    },
  });
  command.addTo(program, rest);
  try {
    await program.parseAsync(["go", ...argv], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    expect(error.exitCode).toBe(0);
    return help;
  }
  return result;
}

describe("a command", () => {
  it("runs with its options, arguments and what follows --", async () => {
    expect(await run(["-d", "--no-example", "x", "--in", "a"], ["--more"])).toEqual({
      values: { detach: true, lang: undefined, in: ["a"], "no-example": true },
      positionals: ["x"],
      rest: ["--more"],
    });
  });

  it("keeps nothing of an earlier command line", async () => {
    await run(["--in", "a", "--no-example"]);
    expect(await run([])).toMatchObject({ values: { in: [], "no-example": false } });
  });

  it.each(["-h", "--help"])("shows every option once with %s, and runs nothing", async (flag) => {
    const help = String(await run(["x", flag]));
    expect(help).toMatch(/^Usage: .\/svc go \[NAME\]\n\nGoes\.\n/);
    for (const text of [/^ {2}-l, --lang <LANG> +Language\.$/gm, /May be repeated\./g, /Exit codes: 7\./g]) {
      expect(help.match(text)).toHaveLength(1);
    }
  });

  it("refuses an argument too many", async () => {
    await expect(run(["x", "y"])).rejects.toMatchObject({
      message: "unexpected argument y",
      advice: "See: ./svc go --help",
      exitCode: 2,
    });
  });

  it.each([
    ["exce", "unknown command exce; did you mean exec?"],
    ["constructor", "unknown command constructor"],
  ])("is not started by the wrong name %s", async (name, message) => {
    const parser = await parserFor(name);
    await expect(parser.parseAsync([name], { from: "user" })).rejects.toMatchObject({ message, exitCode: 2 });
  });
});

describe("wholeNumber", () => {
  it("accepts what is in range", () => expect(wholeNumber("n", "7", 0, 10)).toBe(7));
  it.each(["", "-1", "1.5", "11", "1e3", " 1", "0x1"])("refuses %j", (text) => {
    expect(() => wholeNumber("n", text, 0, 10)).toThrow(/--n must be a whole number from 0 to 10/);
  });
});
