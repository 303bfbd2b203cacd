import fc from "fast-check";
import { expect, test } from "vitest";
import { readEvents, type ServerEvent, TooLargeEvent } from "../../src/sse.ts";

/** A body that comes in pieces of these lengths, again and again. */
function bodyOf(
  text: string,
  lengths: readonly number[] = [Number.MAX_SAFE_INTEGER],
): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  let turn = 0;
  return new ReadableStream({
    pull: (controller) => {
      if (at >= bytes.length) return controller.close();
      const length = lengths[turn++ % lengths.length] ?? 1;
      controller.enqueue(bytes.slice(at, at + length));
      at += length;
    },
  });
}
const read = async (text: string, lengths?: readonly number[], most?: number) => {
  const events: ServerEvent[] = [];
  for await (const event of readEvents(bodyOf(text, lengths), most)) events.push(event);
  return events;
};

test.each<[string, string, ServerEvent[]]>([
  ["a comment", ":\n\nevent: a\ndata: 1\n\n", [{ event: "a", data: "1" }]],
  ["several lines of data", "data: 1\ndata:2\ndata:  3\n\n", [{ event: "message", data: "1\n2\n 3" }]],
  [
    "other line ends",
    "event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\r",
    [
      { event: "a", data: "1" },
      { event: "b", data: "2" },
    ],
  ],
  [
    "fields that are not known, and an event without data",
    "id: 7\nretry: 1\nevent: a\n\ndata\n\n",
    [{ event: "message", data: "" }],
  ],
  [
    "a name without data, which is not the next event's",
    "event: a\n\ndata: 1\n\n",
    [{ event: "message", data: "1" }],
  ],
  ["colons in data", 'event: a\ndata: {"a": ":"}\n\n', [{ event: "a", data: '{"a": ":"}' }]],
  ["an event without its empty line", "event: a\ndata: never ended\n", []],
  ["nothing", "", []],
  ["an event that is not complete", "event: a\ndata: 1\n\nevent: b\ndata: 2", [{ event: "a", data: "1" }]],
])("%s", async (_what, text, events) => {
  expect(await read(text)).toEqual(events);
  expect(await read(text, [1])).toEqual(events);
});

test("events that a service writes are read again, wherever their bytes are split", async () => {
  const texts = fc.array(
    fc.record({ event: fc.constantFrom("stdout", "result"), data: fc.string({ unit: "grapheme" }) }),
  );
  const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(texts, lengths, async (written, pieces) => {
      const events = written.map(({ event, data }) => ({ event, data: JSON.stringify({ text: data }) }));
      const text = events.map(({ event, data }) => `event: ${event}\ndata: ${data}\n\n`).join(":\n\n");
      expect(await read(text, pieces)).toEqual(events);
    }),
  );
});

test("an event or a line that is too large ends the reading", async () => {
  await expect(read(`data: ${"x".repeat(200)}\n\n`, [10], 100)).rejects.toThrow(TooLargeEvent);
  await expect(read("data: x\n".repeat(50), [10], 100)).rejects.toThrow(TooLargeEvent);
});
