import { captured, outputDecoder, unfinished, withNotes } from "@svc/runner/execution/decode-output";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const text = fc.string({ unit: fc.constantFrom("a", "\n", "é", "ß", "日", "\u2028", "🎉", "👩") });

/** Bytes that often make characters, whole and broken ones. */
const BYTES = [
  0x0a, 0x41, 0x80, 0x9f, 0xa0, 0xac, 0xbb, 0xbf, 0x82, 0x8f, 0x90, 0x98, 0xc0, 0xc2, 0xc3, 0xe0,
];
const MORE_BYTES = [0xe2, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xfe, 0xff];
const bytes = fc
  .array(fc.constantFrom(...BYTES, ...MORE_BYTES), { maxLength: 16 })
  .map((raw) => Buffer.from(raw));

describe("unfinished", () => {
  it("is all that was written but the beginning of a character", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 0, max: 40 }), (written, cap) => {
        const shown = unfinished(Buffer.from(written).subarray(0, cap));
        expect(written.startsWith(shown)).toBe(true);
        expect(Buffer.byteLength(shown)).toBeGreaterThan(Math.min(cap, Buffer.byteLength(written)) - 4);
      }),
      { numRuns: 2000 },
    );
  });

  it("is the beginning of the text of any bytes, and misses one character at most", () => {
    fc.assert(
      fc.property(bytes, (raw) => {
        const [shown, whole] = [unfinished(raw), captured(raw, raw.length, raw.length)];
        expect(whole.startsWith(shown)).toBe(true);
        expect(whole.length - shown.length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 5000 },
    );
  });
});

describe("outputDecoder", () => {
  it("tells in pieces, however they are cut, what an overflowing stream shows, and the beginning of what another does", () => {
    fc.assert(
      fc.property(bytes, fc.array(fc.integer({ min: 0, max: 5 })), (raw, sizes) => {
        const decoder = outputDecoder();
        let [told, at] = ["", 0];
        for (const size of [...sizes, raw.length]) {
          told += decoder.decode(raw.subarray(at, at + size));
          at += size;
        }
        expect(told).toBe(captured(raw, raw.length + 1, raw.length));
        expect(captured(raw, raw.length, raw.length).startsWith(told)).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });
});

describe("captured", () => {
  it("never ends an overflowing stream with half a character", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 4, max: 40 }), (written, cap) => {
        const bytes = Buffer.from(written);
        const shown = captured(bytes.subarray(0, cap), bytes.length, cap);
        expect(written.startsWith(shown)).toBe(true);
        if (bytes.length <= cap) expect(shown).toBe(written);
      }),
    );
  });

  it("shows bytes that are no UTF-8 as replacement characters", () => {
    expect(captured(Buffer.from([0x61, 0xff, 0xfe, 0x62]), 4, 65_536)).toBe("a\ufffd\ufffdb");
  });

  it("shows half a character that the program itself left at its end", () => {
    expect(captured(Buffer.from([0x61, 0xf0, 0x9f]), 3, 65_536)).toBe("a\ufffd");
    expect(captured(Buffer.from([0x61, 0xf0, 0x9f]), 3, 3)).toBe("a\ufffd");
  });
});

describe("withNotes", () => {
  it.each([
    ["", [], ""],
    ["text", [], "text"],
    ["", ["Out of memory"], "[sandbox] Out of memory\n"],
    ["text\n", ["Out of memory"], "text\n[sandbox] Out of memory\n"],
    ["text", ["Out of memory"], "text\n[sandbox] Out of memory\n"],
    ["text", ["a", "b"], "text\n[sandbox] a\n[sandbox] b\n"],
    ["\r", ["a"], "\r\n[sandbox] a\n"],
    ["[sandbox] a\n", ["a"], "[sandbox] a\n[sandbox] a\n"],
  ])("%j with %j is %j", (stderr, notes, expected) => {
    expect(withNotes(stderr, notes)).toBe(expected);
  });

  it("leaves the program's own text alone and puts every note on a line of its own", () => {
    const note = fc.string().map((line) => line.replace(/[\r\n]/g, " "));
    fc.assert(
      fc.property(fc.string(), fc.array(note, { minLength: 1, maxLength: 5 }), (stderr, notes) => {
        const shown = withNotes(stderr, notes);
        expect(shown.startsWith(stderr)).toBe(true);
        expect(shown.split("\n").slice(-notes.length - 1, -1)).toEqual(
          notes.map((each) => `[sandbox] ${each}`),
        );
      }),
    );
  });
});
