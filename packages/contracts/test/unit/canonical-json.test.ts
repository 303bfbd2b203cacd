import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalArguments } from "../../src/canonical-json.ts";

/** The same value with its keys in another order at all levels. */
function reordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== "object" || value === null) return value;
  const text = Object.entries(value)
    .reverse()
    .map(([key, item]) => `${JSON.stringify(key)}: ${JSON.stringify(reordered(item))}`)
    .join(" , ");
  return JSON.parse(`{ ${text} }`);
}

describe("the canonical text of arguments", () => {
  it("is the same for the same value, whatever the order of its keys", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value = JSON.parse(text);
        expect(canonicalArguments(reordered(value))).toBe(canonicalArguments(value));
      }),
    );
  });

  it("is JSON that says the same, and nothing else says it", () => {
    fc.assert(
      fc.property(fc.json(), fc.json(), (left, right) => {
        const [one, other] = [JSON.parse(left), JSON.parse(right)];
        expect(JSON.parse(canonicalArguments(one))).toEqual(one);
        const same = canonicalArguments(one) === canonicalArguments(other);
        expect(same).toBe(JSON.stringify(reordered(one)) === JSON.stringify(reordered(other)) || same);
        if (same) expect(one).toEqual(other);
      }),
    );
  });

  it("has sorted keys, no spaces, numbers as JSON.stringify writes them, and keeps every key", () => {
    const value = JSON.parse(
      '{"b": [1.0, -0, 1e21], "a": {"__proto__": null, "é": "\\u2028"}, "10": 1, "9": 2}',
    );
    expect(canonicalArguments(value)).toBe(
      '{"10":1,"9":2,"a":{"__proto__":null,"é":"\u2028"},"b":[1,0,1e+21]}',
    );
  });

  it("leaves objects of more keys than it is told to sort as they came, and sorts those in them", () => {
    expect(canonicalArguments({ b: { d: 1, c: 2 }, a: 3, z: 4 }, 2)).toBe('{"b":{"c":2,"d":1},"a":3,"z":4}');
    expect(canonicalArguments({ b: { d: 1, c: 2 }, a: 3 }, 2)).toBe('{"a":3,"b":{"c":2,"d":1}}');
  });

  it.each([
    ["65,000 elements", `[${"0,".repeat(64_999)}0]`],
    ["1,000,000 elements", `[${"{},".repeat(999_999)}{}]`],
    ["200,000 members", `{${Array.from({ length: 200_000 }, (_, at) => `"${100_000 + at}":[]`).join(",")}}`],
  ])("is made of %s", (_, text) => {
    expect(canonicalArguments(JSON.parse(text))).toBe(text);
  });

  it("is made of what is nested deeper than a stack", () => {
    const depth = 200_000;
    const text = `${'{"a":['.repeat(depth)}${"]}".repeat(depth)}`;
    expect(canonicalArguments(JSON.parse(text))).toBe(text);
  });
});
