import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type BatchRequest,
  decodeInputBatch,
  encodeInputBatch,
  type InputBatch,
  MAX_BATCH_ANSWER_BYTES,
  MAX_BATCH_BYTES,
  MAX_BATCHED_FILE_BYTES,
  MAX_DIRKEEPS,
  missingIn,
} from "../../src/index.ts";

const fileOf = (content: Buffer, readOnly = false) => ({
  content,
  readOnly,
  etag: createHash("sha256").update(content).digest("hex"),
});
const requestFor = ({ files, directories }: InputBatch): BatchRequest => ({
  files: files.map((_, at) => ({ storage_session_id: "session", id: `file-${at}` })),
  directories: directories.map((_, at) => `session-${at}`),
});
const batches: fc.Arbitrary<InputBatch> = fc.record({
  files: fc.array(
    fc.option(
      fc
        .tuple(fc.uint8Array({ maxLength: 300 }), fc.boolean())
        .map(([bytes, readOnly]) => fileOf(Buffer.from(bytes), readOnly)),
      { nil: undefined },
    ),
    { maxLength: 8 },
  ),
  directories: fc.array(fc.option(fc.array(fc.string(), { maxLength: 4 }), { nil: undefined }), {
    maxLength: 4,
  }),
});

describe("a batch of inputs", () => {
  test("says what it was made of, and how much of it is missing", () => {
    fc.assert(
      fc.property(batches, (batch) => {
        const decoded = decodeInputBatch(encodeInputBatch(batch), requestFor(batch));
        expect(decoded).toEqual(batch);
        expect(missingIn(decoded)).toBe(
          [...batch.files, ...batch.directories].filter((one) => one === undefined).length,
        );
      }),
    );
  });

  test("that is shorter or longer than its head says is refused", () => {
    fc.assert(
      fc.property(batches, fc.nat(), (batch, cut) => {
        const bytes = encodeInputBatch(batch);
        const request = requestFor(batch);
        expect(() => decodeInputBatch(bytes.subarray(0, cut % bytes.length), request)).toThrow();
        expect(() => decodeInputBatch(Buffer.concat([bytes, Buffer.from("x")]), request)).toThrow();
      }),
    );
  });

  test("with any bytes changed gives files of the lengths that it has, or is refused", () => {
    fc.assert(
      fc.property(batches, fc.nat(), fc.integer({ min: 0, max: 255 }), (batch, at, value) => {
        const bytes = encodeInputBatch(batch);
        bytes[at % bytes.length] = value;
        let decoded: InputBatch;
        try {
          decoded = decodeInputBatch(bytes, requestFor(batch));
        } catch {
          return;
        }
        const total = decoded.files.reduce((sum, file) => sum + (file?.content.length ?? 0), 0);
        expect(total).toBeLessThan(bytes.length);
        expect(decoded.files).toHaveLength(batch.files.length);
      }),
    );
  });

  test.each<[string, unknown]>([
    ["no head", null],
    ["another number of files", { files: [], directories: [null] }],
    ["another number of sessions", { files: [null], directories: [] }],
    [
      "a negative size",
      { files: [{ size: -1, etag: "0".repeat(64), read_only: false }], directories: [null] },
    ],
    ["a tag that is none", { files: [{ size: 0, etag: "x", read_only: false }], directories: [null] }],
    ["too many directories", { files: [null], directories: [Array(MAX_DIRKEEPS + 1).fill("a/.dirkeep")] }],
    [
      "a file beyond the bound",
      {
        files: [{ size: MAX_BATCHED_FILE_BYTES + 1, etag: "0".repeat(64), read_only: false }],
        directories: [null],
      },
    ],
  ])("with %s is refused", (_what, head) => {
    const text = Buffer.from(JSON.stringify(head));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(text.length);
    const request = { files: [{ storage_session_id: "s", id: "f" }], directories: ["s"] };
    expect(() => decodeInputBatch(Buffer.concat([length, text]), request)).toThrow();
  });

  test("of the largest size is within the bound of its readers", () => {
    const files = Array.from({ length: 257 }, (_, at) =>
      fileOf(Buffer.alloc(at < MAX_BATCH_BYTES / MAX_BATCHED_FILE_BYTES ? MAX_BATCHED_FILE_BYTES : 0), true),
    );
    const directories = Array.from({ length: 257 }, () => []);
    const name = `${"d".repeat(20_000)}/.dirkeep`;
    const batch = { files, directories: [...directories.slice(1), Array(MAX_DIRKEEPS).fill(name)] };
    const bytes = encodeInputBatch(batch);
    expect(bytes.length).toBeLessThanOrEqual(MAX_BATCH_ANSWER_BYTES);
    expect(decodeInputBatch(bytes, requestFor(batch)).files).toHaveLength(257);
  });
});
