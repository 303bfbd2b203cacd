import { describe, expect, it } from "vitest";
import { jsonErrorIndex } from "../../src/json-position.ts";

describe("where a text stops being JSON", () => {
  it.each([
    ["", 0],
    ["  ", 2],
    ["{", 1],
    ["[1,", 3],
    ['{"a": 1', 7],
    ['{"a": 1}}', 8],
    ['{"a" 1}', 5],
    ["{a: 1}", 1],
    ["{'a': 1}", 1],
    ['{"a": 1,}', 8],
    ["[1,]", 3],
    ["[1 2]", 3],
    ["[,1]", 1],
    ['{"code": "print(1)', 18],
    ['"a\nb"', 2],
    ['"\\x"', 1],
    ['"\\u12g4"', 1],
    ["tru", 0],
    ["[truex]", 5],
    ["01", 1],
    ["1.", 1],
    ["-", 0],
    ["NaN", 0],
    ["[1]]", 3],
    ["{}{}", 2],
    ["[[[}", 3],
    ['{"a":{"b":[1,{"c":}]}}', 18],
    ["\ufeff{}", 0],
    ["/* x */ {}", 0],
  ])("%j: at %i", (text, at) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(jsonErrorIndex(text)).toBe(at);
  });

  it.each(["{}", " [] ", '{"a":[1,-2.5e+3,{"b":null}],"c":"\\u00e9\\n"}', "true", '""', "0", '[[],{},""]'])(
    "a text that is JSON is read to its end: %s",
    (text) => {
      expect(() => JSON.parse(text)).not.toThrow();
      expect(jsonErrorIndex(text)).toBe(text.length);
    },
  );

  it("every text that loses a character agrees with the parser on whether it is JSON", () => {
    const text = '{"a": [1, {"b": "c\\"d"}, true], "e": -1.5e3}';
    for (let at = 0; at < text.length; at++) {
      const broken = text.slice(0, at) + text.slice(at + 1);
      const index = jsonErrorIndex(broken);
      expect(index).toBeLessThanOrEqual(broken.length);
      let isJson = true;
      try {
        JSON.parse(broken);
      } catch {
        isJson = false;
      }
      if (isJson) expect(index).toBe(broken.length);
    }
  });

  it.each([
    ["nested lists", "[".repeat(2_000_000)],
    ["escapes", `"${"\\n".repeat(1_000_000)}`],
    ["blanks", " ".repeat(4_000_000)],
    ["digits", `[${"1".repeat(4_000_000)}.`],
  ])("megabytes of %s take a pass, no recursion", (_what, text) => {
    expect(jsonErrorIndex(text)).toBeGreaterThan(0);
  });
});
