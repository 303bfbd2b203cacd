import { describe, expect, it } from "vitest";
import { asksForHelp, optionHelp, parseOptions, wholeNumber } from "../../src/options.ts";

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

describe("help", () => {
  it("is asked for by -h and --help, but not behind --", () => {
    expect(asksForHelp(["a", "-h"])).toBe(true);
    expect(asksForHelp(["--help"])).toBe(true);
    expect(asksForHelp(["--", "--help"])).toBe(false);
  });

  it("names every option once, with its value", () => {
    const lines = optionHelp(OPTIONS).split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[1]).toMatch(/^ {2}-l, --lang LANG\s+Language\.$/);
    expect(lines[2]).toContain("May be repeated.");
  });
});

describe("wholeNumber", () => {
  it("accepts what is in range", () => expect(wholeNumber("n", "7", 0, 10)).toBe(7));
  it.each(["", "-1", "1.5", "11", "1e3", " 1", "0x1"])("refuses %j", (text) => {
    expect(() => wholeNumber("n", text, 0, 10)).toThrow(/--n must be a whole number from 0 to 10/);
  });
});
