import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JsonShape } from "../../src/http/json-shape.ts";

const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
const valuesOf = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? Object.values(value).reduce((sum: number, item) => sum + valuesOf(item), 1)
    : 1;

function read(text: string, maxDepth: number, maxValues: number, sizes: readonly number[] = [text.length]) {
  const shape = new JsonShape({ maxDepth, maxValues });
  const bytes = Buffer.from(text);
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    shape.push(bytes.subarray(at, at + size));
    at += size;
  }
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
const text = fc.string({ unit: fc.constantFrom('"', "\\", "[", "]", "{", "}", ",", ":", "a", "é", "\n") });
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "medium" },
    fc.constantFrom(null, true, 0, -1.5e-7),
    text,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(text, tie("value"), { maxKeys: 4 }),
  ),
})).value;

describe("the shape of a JSON text", () => {
  it("is exactly its depth and its number of values, however it is written and cut", () => {
    fc.assert(
      fc.property(json, sizes, fc.constantFrom(undefined, 1, "\t"), (value, cuts, indent) => {
        const written = JSON.stringify(value, undefined, indent);
        const [depth, values] = [depthOf(value), valuesOf(value)];
        expect(() => read(written, depth, values, cuts)).not.toThrow();
        if (depth > 0) expect(() => read(written, depth - 1, values, cuts)).toThrow(/deeper/);
        if (values > 1) expect(() => read(written, depth, values - 1, cuts)).toThrow(/more than/);
      }),
      { numRuns: 1000 },
    );
  });

  it("is refused with a sentence that names the limit", () => {
    expect(() => read("[".repeat(65), 64, 10_000)).toThrow(
      expect.objectContaining({
        code: "invalid_json",
        status: 400,
        message: "The request body is nested deeper than 64 levels.",
      }),
    );
    expect(() => read(`[${"0,".repeat(200_000)}0]`, 64, 200_000)).toThrow(
      expect.objectContaining({
        code: "invalid_json",
        message: "The request body holds more than 200,000 values.",
      }),
    );
  });

  it("is nothing in texts", () => {
    expect(() => read(JSON.stringify({ code: '[{,"\\'.repeat(10_000) }), 1, 2)).not.toThrow();
  });

  it("of what is no JSON never fails otherwise than as invalid_json", () => {
    const pieces = fc.array(fc.constantFrom('"', "\\", "[", "]", "{", "}", ",", ":", " ", "x"));
    fc.assert(
      fc.property(pieces, sizes, (parts, cuts) => {
        try {
          read(parts.join(""), 3, 5, cuts);
        } catch (error) {
          expect(error).toMatchObject({ code: "invalid_json" });
        }
      }),
    );
  });
});
