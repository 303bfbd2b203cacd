import { eventsOf, type ServerEvent } from "@svc/cli/exec/event-stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

async function* inPieces(text: string, sizes: readonly number[]): AsyncGenerator<string> {
  let at = 0;
  for (const size of [...sizes, text.length]) {
    yield text.slice(at, at + size);
    at += size;
  }
}

async function read(text: string, sizes: readonly number[] = []): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of eventsOf(inPieces(text, sizes))) events.push(event);
  return events;
}

describe("events of a stream", () => {
  it.each<[string, ServerEvent[]]>([
    ["", []],
    [":\n\n", []],
    ["event: a\ndata: 1\n\n", [{ event: "a", data: "1" }]],
    [
      "event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\r:",
      [
        { event: "a", data: "1" },
        { event: "b", data: "2" },
      ],
    ],
    ["data: 1\n\n", [{ event: "message", data: "1" }]],
    ["data:1\ndata:  2\ndata\n\n", [{ event: "message", data: "1\n 2\n" }]],
    ["event: a\n\ndata: 1\n\n", [{ event: "message", data: "1" }]],
    [
      'id: 7\nretry: 1\nother\n: comment\nevent: a\ndata: {"a": ":"}\n\n',
      [{ event: "a", data: '{"a": ":"}' }],
    ],
    ["event: a\ndata: never ended", []],
    ["event: a\ndata: never ended\n", []],
  ])("%j", async (text, expected) => {
    expect(await read(text)).toEqual(expected);
  });

  it("are the same however their text is cut", async () => {
    const data = fc.string({ unit: fc.constantFrom("a", ":", " ", "\\n", "é", "🎉", "\u2028") });
    const events = fc.array(fc.tuple(fc.constantFrom("stdout", "result"), data), { maxLength: 5 });
    const ends = fc.constantFrom("\n", "\r\n", "\r");
    await fc.assert(
      fc.asyncProperty(events, ends, fc.array(fc.integer({ min: 0, max: 7 })), async (sent, end, sizes) => {
        const text = sent.map(([event, each]) => `event: ${event}${end}data: ${each}${end}${end}`).join("");
        expect(await read(`${text}\n`, sizes)).toEqual(sent.map(([event, each]) => ({ event, data: each })));
      }),
      { numRuns: 500 },
    );
  });
});
