import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { digestOf, jsonText } from "../../src/json.ts";

/** The same value with keys the other way round and spaces. */
const reversed = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(reversed)
    : typeof value === "object" && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .reverse()
            .map(([key, item]) => [key, reversed(item)]),
        )
      : value;

const sameJson = (left: string, right: string) => digestOf(JSON.parse(left)) === digestOf(JSON.parse(right));

describe("the digests of two JSON texts", () => {
  it("are the same whatever the order of keys and the spaces", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(sameJson(text, JSON.stringify(reversed(JSON.parse(text)), null, 2))).toBe(true);
      }),
    );
  });

  it("are different when the values are", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(sameJson(JSON.stringify(value), JSON.stringify([value]))).toBe(false);
      }),
    );
    expect(sameJson('{"__proto__":1}', "{}")).toBe(false);
    expect(sameJson("[1,2]", "[2,1]")).toBe(false);
    expect(sameJson('{"a":"1"}', '{"a":1}')).toBe(false);
  });
});

describe("a value's text", () => {
  it("is refused when the value is nested too deeply to be written", () => {
    const deep = JSON.parse(`${"[".repeat(200_000)}${"]".repeat(200_000)}`);
    expect(() => jsonText(deep, "input")).toThrow("input: is nested too deeply.");
  });
});
