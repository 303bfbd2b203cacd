import { boundsAround, type RunEvent } from "@svc/contracts";
import { readEventLines } from "@svc/worker/runner/event-lines";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const LIMITS = { maxBytes: 10_000, maxText: 1000, bounds: boundsAround(4) };
const STARTED: RunEvent = { event: "started", language: "python", version: "3" };
const line = (value: unknown) => `${JSON.stringify(value)}\n`;

async function* inPieces(text: string, sizes: readonly number[]): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    if (at < bytes.length) yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function read(text: string, sizes: readonly number[] = [], limits = LIMITS) {
  const told: RunEvent[] = [];
  const answer = await readEventLines(inPieces(text, sizes), (event) => told.push(event), limits);
  return { told, answer };
}

describe("a runner's answer with events", () => {
  it("is read the same however it is cut", async () => {
    const event = fc.record({
      event: fc.constantFrom("stdout" as const, "stderr" as const),
      text: fc.string({ unit: "grapheme", minLength: 1 }),
    });
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }));
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 8 }), sizes, async (events, cuts) => {
        const lines = [STARTED, ...events].map(line).join("") + line({ answer: { stdout: "x" } });
        expect(await read(lines, cuts)).toEqual({ told: [STARTED, ...events], answer: { stdout: "x" } });
      }),
      { numRuns: 500 },
    );
  });

  it("throws the failure of its last line", async () => {
    const failure = { status: 503, body: { error: "runner_busy", message: "inner words" } };
    await expect(read(line(STARTED) + line({ failure }))).rejects.toMatchObject({
      code: "runner_busy",
      status: 503,
    });
  });

  it.each<[string, string]>([
    ["is empty", ""],
    ["has no last line", line(STARTED)],
    ["ends within its last line", `${line(STARTED)}{"answer":{}`],
    ["ends before the end of its last line", `${line(STARTED)}{"answer":{}}`],
    ["goes on behind its last line", line({ answer: {} }) + line(STARTED)],
    ["has two last lines", line({ answer: {} }) + line({ answer: {} })],
    ["has an empty line", `\n${line({ answer: {} })}`],
    ["is no JSON", "{\n"],
    ["has an unknown event", line({ event: "other" }) + line({ answer: {} })],
    ["has an event without text", line({ event: "stdout" }) + line({ answer: {} })],
    ["starts twice", line(STARTED) + line(STARTED) + line({ answer: {} })],
    ["has an event with an empty text", line({ event: "stdout", text: "" }) + line({ answer: {} })],
    [
      "tells more output than there may be, a character at a time",
      line({ event: "stderr", text: "x" }) +
        line({ event: "stdout", text: "x" }).repeat(100) +
        line({ event: "stdout", text: "x".repeat(901) }) +
        line({ answer: {} }),
    ],
    ["has an unknown line", line({}) + line({ answer: {} })],
    ["has a failure that is none", line({ failure: { status: 200, body: {} } })],
    ["is a number", "7\n"],
    ["is deep", `${"[".repeat(100)}\n`],
  ])("that %s is refused", async (_what, text) => {
    await expect(read(text)).rejects.toThrow();
  });

  it("is not read beyond its bound", async () => {
    const text = line({ event: "stdout", text: "x".repeat(600) }).repeat(20);
    const limits = { ...LIMITS, maxText: text.length };
    await expect(read(text, Array(200).fill(100), limits)).rejects.toThrow("longer than 10000 bytes");
  });
});
