import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  findToolCollision,
  type ProgrammaticLanguage,
  sharesCommandName,
  toolIdentifier,
  toolNames,
} from "../../src/index.ts";

const language = fc.constantFrom<ProgrammaticLanguage>("python", "bash");
const anyName = fc.oneof(
  fc.string({ unit: "binary", minLength: 1, maxLength: 256 }),
  fc.string({ unit: fc.constantFrom(..."aZ09_-. \t\n☃'\"$`(){};é"), minLength: 1, maxLength: 12 }),
  fc.constantFrom(
    "if",
    "class",
    "echo",
    "wait",
    "eval",
    "None",
    "export",
    "__name__",
    "constructor",
    "__proto__",
  ),
);

describe("toolIdentifier", () => {
  it("makes an identifier of every name", () => {
    fc.assert(
      fc.property(anyName, language, (name, lang) => {
        for (const made of toolNames(name, lang)) expect(made).toMatch(/^[A-Za-z_][A-Za-z0-9_]*$/);
      }),
    );
  });

  it("leaves an identifier that is no reserved word as it is", () => {
    const identifier = fc.stringMatching(/^[a-z]{3,8}_[a-z0-9]{1,8}$/);
    fc.assert(fc.property(identifier, language, (name, lang) => toolIdentifier(name, lang) === name));
  });

  it("gives the identifier of an identifier: the same", () => {
    fc.assert(
      fc.property(anyName, language, (name, lang) => {
        const once = toolIdentifier(name, lang);
        expect(toolIdentifier(once, lang)).toBe(once);
      }),
    );
  });

  it.each([
    ["get-weather", "get_weather", "get_weather"],
    ["get weather\tnow", "get_weather_now", "get_weather_now"],
    ["get.weather", "getweather", "get_weather"],
    ["1st", "_1st", "_1st"],
    ["naïve☃", "nave", "nave"],
    ["☃", "tool", "tool"],
    ["class", "class_tool", "class"],
    ["None", "None_tool", "None"],
    ["__name__", "__name___tool", "__name__"],
    ["match", "match", "match"],
    ["if", "if_tool", "if_tool"],
    ["done", "done", "done_tool"],
    ["export", "export", "export_tool"],
    ["eval", "eval", "eval_tool"],
    ["echo", "echo", "echo"],
    ["print", "print", "print"],
    ["constructor", "constructor", "constructor"],
  ])("%j is %s in Python and %s in Bash", (name, python, bash) => {
    expect([toolIdentifier(name, "python"), toolIdentifier(name, "bash")]).toEqual([python, bash]);
  });
});

describe("a Bash tool named like a builtin or command", () => {
  it.each(["echo", "read", "test", "wait", "kill", "cat", "jq", "python3"])("%s has two names", (name) => {
    expect(sharesCommandName(name)).toBe(true);
    expect(toolNames(name, "bash")).toEqual([name, `${name}_tool`]);
    expect(toolNames(name, "python")).toEqual([name]);
  });
});

describe("findToolCollision", () => {
  it.each<[string[], ProgrammaticLanguage, unknown]>([
    [["a", "b-c", "b_c"], "python", { first: 1, second: 2, identifier: "b_c" }],
    [["a.b", "ab"], "python", { first: 0, second: 1, identifier: "ab" }],
    [["a.b", "ab"], "bash", undefined],
    [["a.b", "a_b"], "bash", { first: 0, second: 1, identifier: "a_b" }],
    [["class", "class_tool"], "python", { first: 0, second: 1, identifier: "class_tool" }],
    [["echo_tool", "echo"], "bash", { first: 0, second: 1, identifier: "echo_tool" }],
    [["echo_tool", "echo"], "python", undefined],
    [["☃", "tool"], "bash", { first: 0, second: 1, identifier: "tool" }],
    [["same", "same"], "python", { first: 0, second: 1, identifier: "same" }],
    [["constructor", "__proto__", "toString"], "python", undefined],
  ])("of %j in %s is %j", (names, lang, expected) => {
    expect(findToolCollision(names, lang)).toEqual(expected);
  });

  it("is found exactly when two tools share a name, and names both", () => {
    fc.assert(
      fc.property(fc.array(anyName, { maxLength: 8 }), language, (names, lang) => {
        const taken = names.flatMap((name) => toolNames(name, lang));
        const collision = findToolCollision(names, lang);
        expect(collision === undefined).toBe(new Set(taken).size === taken.length);
        if (collision === undefined) return;
        expect(collision.first).toBeLessThan(collision.second);
        for (const index of [collision.first, collision.second])
          expect(toolNames(names[index] as string, lang)).toContain(collision.identifier);
      }),
    );
  });
});
