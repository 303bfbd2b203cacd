import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boundsAround, exceededJsonBound, JSON_BOUNDS, JsonScanner } from "../../src/json-bounds.ts";

interface Size {
  depth: number;
  values: number;
}

function sizeOf(value: unknown): Size {
  if (typeof value !== "object" || value === null) return { depth: 0, values: 1 };
  const inner = Object.values(value).map(sizeOf);
  return {
    depth: 1 + inner.reduce((most, { depth }) => Math.max(most, depth), 0),
    values: 1 + inner.reduce((sum, { values }) => sum + values, 0),
  };
}

const TICK_MS = 4;
const exceeded = (text: string, bounds?: Size) => exceededJsonBound(Buffer.from(text), bounds);

/** Sizes of pieces, used in turn. */
const cuts = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 5 });
const noisyText = fc.string({
  unit: fc.constantFrom('"', "\\", "[", "]", "{", "}", ",", ":", "a", "é", "\n"),
  maxLength: 200,
});

function exceededInPieces(text: string, bounds: Size, sizes: readonly number[]) {
  const scanner = new JsonScanner(bounds);
  const bytes = Buffer.from(text);
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    const bound = scanner.push(bytes.subarray(at, at + size));
    if (bound !== undefined) return bound;
    at += size;
  }
  return undefined;
}

describe("the bounds of JSON", () => {
  it("are kept by JSON of exactly that depth and so many values, and not by what is beyond", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.nat(4), (text, blanks) => {
        const value = JSON.parse(text);
        const size = sizeOf(value);
        const written = JSON.stringify(value, null, blanks);
        expect(exceeded(written, size)).toBeUndefined();
        if (size.values > 1) expect(exceeded(written, { ...size, values: size.values - 1 })).toBe("values");
        if (size.depth > 0) expect(exceeded(written, { ...size, depth: size.depth - 1 })).toBe("depth");
      }),
      { numRuns: 2000 },
    );
  });

  it("are the same for a text that comes in pieces", () => {
    const texts = fc.oneof(
      fc.json({ maxDepth: 6, stringUnit: "binary" }),
      noisyText,
      fc.array(noisyText).map((all) => JSON.stringify(all)),
    );
    fc.assert(
      fc.property(texts, cuts, fc.nat(6), fc.integer({ min: 1, max: 40 }), (text, sizes, depth, values) => {
        expect(exceededInPieces(text, { depth, values }, sizes)).toBe(exceeded(text, { depth, values }));
      }),
      { numRuns: 3000 },
    );
  });

  it.each([
    ["brackets and commas in a string", `"${"[{,".repeat(300_000)}"`, undefined],
    ["escaped quotation marks in a string", `"${'\\"[,'.repeat(300_000)}"`, undefined],
    ["a string that ends in backslashes", `["${"\\\\".repeat(1000)}",${"[".repeat(64)}`, "depth"],
    [
      "backslashes before the mark that ends a long string",
      `["${"x".repeat(100)}\\\\",${"[".repeat(64)}`,
      "depth",
    ],
    ["an escaped mark far inside a string", `"${"x".repeat(100)}\\"${"[".repeat(100)}"`, undefined],
    ["keys with brackets", `{${'"[[[":0,'.repeat(1000)}"a":0}`, undefined],
    ["containers one after the other", `[${"{},".repeat(150_000)}0]`, undefined],
    ["a hundred thousand objects of one member", `[${'{"a":0},'.repeat(100_000)}0]`, "values"],
    ["as many values as are allowed", `[${"0,".repeat(JSON_BOUNDS.values - 2)}0]`, undefined],
    ["one value more", `[${"0,".repeat(JSON_BOUNDS.values - 1)}0]`, "values"],
    [
      "as many levels as are allowed",
      `${"[".repeat(JSON_BOUNDS.depth)}${"]".repeat(JSON_BOUNDS.depth)}`,
      undefined,
    ],
    [
      "one level more",
      `${'{"a":'.repeat(JSON_BOUNDS.depth + 1)}0${"}".repeat(JSON_BOUNDS.depth + 1)}`,
      "depth",
    ],
    ["a million levels", "[".repeat(1_000_000), "depth"],
    ["a string without an end", `"${"x".repeat(1_000_000)}`, undefined],
    ["nothing", "", undefined],
  ])("say of %s what is true", (_, text, bound) => {
    expect(exceeded(text)).toBe(bound);
  });

  it("leave room for a message of ours around JSON that keeps them", () => {
    const inner = `[${`${"[".repeat(63)}${"]".repeat(63)},`.repeat(3000)}${"0,".repeat(10_000)}0]`;
    expect(exceeded(inner)).toBeUndefined();
    expect(exceeded(`{"calls":[{"call_id":"a","call":{"tool_name":"b","input":${inner}}}]}`)).toBe("depth");
    const around = boundsAround(4);
    expect(
      exceeded(`{"calls":[{"call_id":"a","call":{"tool_name":"b","input":${inner}}}]}`, around),
    ).toBeUndefined();
  });

  it.each([
    ["numbers", "0,"],
    ["empty objects", "{},"],
    ["nested", "["],
    ["escaped marks", '"\\"",'],
    ["backslashes", "\\"],
    ["blanks", " "],
    ["short strings", '"ab",'],
  ])("are judged in time that grows with the length alone: %s", (_, unit) => {
    const unbounded = { depth: Number.MAX_SAFE_INTEGER, values: Number.MAX_SAFE_INTEGER };
    const [small, large] = [1, 16].map((factor) => Buffer.alloc(factor * 1_000_000, unit)) as [
      Buffer,
      Buffer,
    ];
    const time = (bytes: Buffer) => {
      const tries = Array.from({ length: 3 }, () => {
        const before = process.threadCpuUsage();
        exceededJsonBound(bytes, unbounded);
        // Of this thread alone: other work on the machine does not count. The kernel may count in ticks.
        return Math.max(process.threadCpuUsage(before).user / 1000, TICK_MS);
      });
      return tries.reduce((least, ms) => Math.min(least, ms));
    };
    time(small);
    // Sixteen times as long takes sixteen times the time; with a square in it, 256 times.
    expect(time(large)).toBeLessThan(64 * time(small));
  });
});
