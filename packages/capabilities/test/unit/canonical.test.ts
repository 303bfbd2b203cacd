import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, NotCanonical, sha256 } from "../../src/index.ts";

describe("canonicalJson", () => {
  it("sorts keys at all levels, leaves out spaces and undefined fields, keeps the order of arrays", () => {
    const value = { b: [2, { d: null, c: "ä\u2028\ud800" }], a: undefined, A: { z: true, y: -0 } };
    expect(canonicalJson(value)).toBe('{"A":{"y":0,"z":true},"b":[2,{"c":"ä\u2028\\ud800","d":null}]}');
  });

  it("keeps every key, also those that JavaScript's own objects know", () => {
    const text = '{"__proto__":{"x":1},"constructor":{"prototype":{}},"toString":null}';
    expect(canonicalJson(JSON.parse(text))).toBe(text);
    expect(canonicalJson(JSON.parse('{"a":1,"__proto__":{"x":1}}'))).not.toBe(canonicalJson({ a: 1 }));
  });

  it("survives a journey as JSON, whatever the order of the keys was", () => {
    const shuffled = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(shuffled)
        : typeof value === "object" && value !== null
          ? Object.fromEntries(
              Object.entries(value)
                .reverse()
                .map(([key, field]) => [key, shuffled(field)]),
            )
          : value;
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(JSON.parse(text))).toBe(text);
        expect(canonicalJson(shuffled(value))).toBe(text);
      }),
    );
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, [undefined], () => 1, Symbol("x"), 1n])(
    "refuses what JSON cannot say: case %#",
    (value) => {
      expect(() => canonicalJson({ value })).toThrow(NotCanonical);
    },
  );

  it("refuses a number that JSON text can hold but no number can: it would read like null", () => {
    expect(() => canonicalJson(JSON.parse('{"run_timeout":1e400}'))).toThrow(NotCanonical);
  });

  it("refuses deep nesting instead of running out of stack", () => {
    const deep = (levels: number) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`) as unknown;
    expect(canonicalJson(deep(32))).toBe(JSON.stringify(deep(32)));
    for (const levels of [33, 100_000]) expect(() => canonicalJson(deep(levels))).toThrow(NotCanonical);
  });
});

describe("sha256", () => {
  it("is the hash of the UTF-8 bytes in base64url", () => {
    expect(sha256("")).toBe("47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    expect(sha256("ä")).toBe(sha256("\u00e4"));
  });
});
