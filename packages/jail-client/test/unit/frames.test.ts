import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CHUNK_BYTES,
  Fields,
  FrameDecoder,
  frame,
  frameHead,
  ProtocolError,
  u32,
  u64,
} from "../../src/frames.ts";

const frames = fc.array(
  fc.record({ tag: fc.constantFrom("a", "b", "x", "1", "z"), payload: fc.uint8Array({ maxLength: 300 }) }),
  { maxLength: 20 },
);

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

describe("the decoder", () => {
  it("returns every frame however the stream is cut", () => {
    fc.assert(
      fc.property(
        frames,
        fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 9 }),
        (sent, sizes) => {
          const stream = Buffer.concat(sent.map(({ tag, payload }) => frame(tag, payload)));
          const decoder = new FrameDecoder();
          const received = cut(stream, sizes).flatMap((piece) => decoder.push(piece));
          expect(received.map(({ tag, payload }) => [tag, [...payload]])).toEqual(
            sent.map(({ tag, payload }) => [tag, [...payload]]),
          );
        },
      ),
    );
  });

  it("answers any bytes with frames or a protocol error, never more bytes than came", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 8 }), (pieces) => {
        const decoder = new FrameDecoder();
        let received = 0;
        try {
          for (const piece of pieces) {
            for (const { payload } of decoder.push(Buffer.from(piece))) received += payload.length + 5;
          }
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
        expect(received).toBeLessThanOrEqual(pieces.reduce((sum, piece) => sum + piece.length, 0));
      }),
    );
  });

  it.each([0, CHUNK_BYTES + 65, 0xffffffff])("refuses a length of %i", (length) => {
    expect(() => new FrameDecoder().push(Buffer.concat([u32(length), Buffer.alloc(8)]))).toThrow(
      ProtocolError,
    );
  });

  it("takes the longest frame that is allowed", () => {
    const payload = Buffer.alloc(CHUNK_BYTES + 63, 1);
    const [received] = new FrameDecoder().push(frame("b", payload));
    expect(received?.payload.equals(payload)).toBe(true);
    expect(() => frame("b", Buffer.alloc(CHUNK_BYTES + 64))).toThrow(ProtocolError);
  });
});

describe("fields", () => {
  it("reads back what was written", () => {
    fc.assert(
      fc.property(
        fc.nat(0xffffffff),
        fc.maxSafeNat(),
        fc.uint8Array({ maxLength: 50 }),
        (word, wide, rest) => {
          const fields = new Fields(Buffer.concat([u32(word), u64(wide), rest]));
          expect([fields.u32(), fields.u64(), [...fields.rest()]]).toEqual([word, wide, [...rest]]);
          fields.end();
        },
      ),
    );
  });

  it("refuses to read past the end and to leave something over", () => {
    expect(() => new Fields(Buffer.alloc(3)).u32()).toThrow(ProtocolError);
    expect(() => new Fields(Buffer.alloc(7)).u64()).toThrow(ProtocolError);
    expect(() => new Fields(Buffer.alloc(1)).end()).toThrow(ProtocolError);
  });

  it("keeps numbers that are too large for a double at its largest whole number", () => {
    expect(new Fields(Buffer.alloc(8, 0xff)).u64()).toBe(Number.MAX_SAFE_INTEGER);
  });

  it("makes the head of a data frame", () => {
    expect(frameHead("B", 3)).toEqual(Buffer.from([4, 0, 0, 0, 0x42]));
  });
});
