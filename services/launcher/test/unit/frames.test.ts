import fc from "fast-check";
import { expect, test } from "vitest";
import {
  encodeCredit,
  encodeFrame,
  type Frame,
  FrameDecoder,
  MAX_DATA,
  TYPES,
} from "../../src/channel/frames.ts";

function decoded(bytes: Buffer, cuts: readonly number[]): Frame[] {
  const decoder = new FrameDecoder();
  const frames: Frame[] = [];
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  let at = 0;
  for (const place of places) {
    frames.push(...decoder.push(bytes.subarray(at, place)));
    at = place;
  }
  return frames;
}

const frame = fc.oneof(
  fc.record({
    stream: fc.nat(2 ** 32 - 1),
    type: fc.constant("data" as const),
    payload: fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  }),
  fc.record({
    stream: fc.nat(2 ** 32 - 1),
    type: fc.constantFrom("open" as const, "end" as const, "reset" as const),
    payload: fc.constant(Buffer.alloc(0)),
  }),
);

test("frames come out as they went in, however the bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 8 }),
      fc.array(fc.nat(4000), { maxLength: 12 }),
      (frames, cuts) => {
        const bytes = Buffer.concat(
          frames.map(({ stream, type, payload }) => encodeFrame(stream, type, payload)),
        );
        expect(decoded(bytes, cuts)).toEqual(frames);
      },
    ),
  );
});

test("credit is a number of four bytes", () => {
  const [credit] = decoded(encodeCredit(7, 65_536), []);
  expect(credit).toEqual({ stream: 7, type: "credit", payload: Buffer.from([0, 1, 0, 0]) });
});

const head = (type: number, length: number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt8(type, 4);
  bytes.writeUIntBE(length, 5, 3);
  return bytes;
};

test.each([
  ["an unknown type", head(TYPES.length, 0)],
  ["a type of the other end of the range", head(255, 0)],
  ["data without bytes", head(1, 0)],
  ["data beyond the bound", head(1, MAX_DATA + 1)],
  ["open with a payload", head(0, 1)],
  ["credit of three bytes", head(3, 3)],
  ["reset with a payload", head(4, 4)],
])("%s is refused at its head", (_what, bytes) => {
  expect(() => decoded(bytes, [])).toThrow("no frame");
});

test("arbitrary bytes are decoded or refused, and never anything else", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) => {
      try {
        for (const { type, payload } of new FrameDecoder().push(Buffer.from(bytes))) {
          expect(TYPES).toContain(type);
          expect(payload.length).toBeLessThanOrEqual(MAX_DATA);
        }
      } catch (error) {
        expect((error as Error).message).toContain("no frame");
      }
    }),
  );
});
