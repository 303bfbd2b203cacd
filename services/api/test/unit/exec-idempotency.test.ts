import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { idempotencyKey } from "../../src/exec/idempotency.ts";
import { canonicalJson } from "../../src/once/canonical-json.ts";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** The same value with the keys of every object in another order. */
function shuffled(value: Json): Json {
  if (Array.isArray(value)) return value.map(shuffled);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).map(([key, item]) => [key, shuffled(item)] as const);
  return Object.fromEntries(entries.reverse());
}

const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as Json);

describe("canonicalJson", () => {
  it("is the same for bodies that differ in the order of keys only", () => {
    fc.assert(fc.property(json, (value) => canonicalJson(shuffled(value)) === canonicalJson(value)));
  });

  it("is JSON of the same value: bodies that differ in anything else differ", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(value);
      }),
    );
  });

  it.each([
    [
      [1, 2],
      [2, 1],
    ],
    [{ a: 1 }, { a: "1" }],
    [{ a: null }, {}],
    [{ a: { b: 1 } }, { a: { b: 2 } }],
    [{ "a,b": 1 }, { a: 1, b: 1 }],
    [{ a: "x\ny" }, { a: "x\\ny" }],
    [
      { "1": 1, "2": 2 },
      { "2": 1, "1": 2 },
    ],
  ])("%j and %j are two bodies", (left, right) => {
    expect(canonicalJson(left)).not.toBe(canonicalJson(right));
  });

  it("sorts keys at every level", () => {
    expect(canonicalJson({ b: [{ d: 1, c: 2 }], a: { z: null, y: true } })).toBe(
      '{"a":{"y":true,"z":null},"b":[{"c":2,"d":1}]}',
    );
  });

  it("refuses what is nested too deeply instead of breaking", () => {
    const deep = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`) as unknown;
    expect(() => canonicalJson({ code: "", other: deep })).toThrow(
      expect.objectContaining({ code: "invalid_json", status: 400 }),
    );
  });
});

describe("idempotencyKey", () => {
  it.each(["a", "x".repeat(255), "550e8400-e29b-41d4-a716-446655440000", " spaces inside ~", "!"])(
    "%j is a key",
    (key) => {
      expect(idempotencyKey({ "idempotency-key": key })).toBe(key);
    },
  );

  it("no header is no key", () => {
    expect(idempotencyKey({})).toBeUndefined();
  });

  it.each(["", "x".repeat(256), "é", "a\tb", "a\u007f", ["a", "b"]])("%j is refused", (key) => {
    expect(() => idempotencyKey({ "idempotency-key": key })).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        status: 400,
        details: [expect.objectContaining({ path: "Idempotency-Key" })],
      }),
    );
  });
});
