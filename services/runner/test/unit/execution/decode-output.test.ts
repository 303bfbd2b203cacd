import { isUtf8 } from "node:buffer";
import { captured, cutAtCharacter, withNotes } from "@svc/runner/execution/decode-output";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const text = fc.string({ unit: fc.constantFrom("a", "\n", "é", "ß", "日", "\u2028", "🎉", "👩") });

describe("cutAtCharacter", () => {
  it("gives a prefix of at most the cap that is whole characters and misses less than one", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 40 }), (written, cap) => {
        const bytes = Buffer.from(written);
        const cut = cutAtCharacter(bytes.subarray(0, cap), cap);
        expect(cut.length).toBeLessThanOrEqual(cap);
        expect(bytes.subarray(0, cut.length).equals(cut)).toBe(true);
        expect(isUtf8(cut)).toBe(true);
        expect(cut.length).toBeGreaterThan(Math.min(cap, bytes.length) - 4);
      }),
      { numRuns: 2000 },
    );
  });

  it("keeps a stream that ends at a character border exactly at the cap", () => {
    fc.assert(
      fc.property(text, (written) => {
        const bytes = Buffer.from(written);
        expect(cutAtCharacter(bytes, bytes.length)).toEqual(bytes);
      }),
    );
  });

  it("drops at most three bytes of bytes that are not text", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (raw) => {
        const bytes = Buffer.from(raw);
        const cut = cutAtCharacter(bytes, bytes.length);
        expect(bytes.length - cut.length).toBeLessThanOrEqual(3);
        expect(bytes.subarray(0, cut.length).equals(cut)).toBe(true);
      }),
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
