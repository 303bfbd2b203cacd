/** Parses server-sent events (WHATWG HTML, section 9.2.6) from a body, in one pass and linear time. The size of an event is bounded. */
import { piecesOf } from "./pieces.ts";

export interface ServerEvent {
  event: string;
  data: string;
}

/** Maximum characters of one event. No response of the service has as many. */
const MAX_EVENT = 128 * 1024 * 1024;
const LINE_END = /\r\n|\n|\r/g;

export class TooLargeEvent extends Error {}

export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  maxEvent: number = MAX_EVENT,
): AsyncGenerator<ServerEvent, void> {
  const lines = new Lines(maxEvent);
  let event = "";
  let data: string[] = [];
  let size = 0;
  for await (const text of textOf(body)) {
    for (const line of lines.push(text)) {
      if (line === "") {
        if (data.length > 0) yield { event: event === "" ? "message" : event, data: data.join("\n") };
        [event, data, size] = ["", [], 0];
        continue;
      }
      size += line.length;
      if (size > maxEvent) throw new TooLargeEvent("an event is too large");
      const [field, value] = fieldOf(line);
      if (field === "event") event = value;
      else if (field === "data") data.push(value);
    }
  }
}

function fieldOf(line: string): [string, string] {
  const colon = line.indexOf(":");
  if (colon < 0) return [line, ""];
  const value = line.slice(colon + 1);
  return [line.slice(0, colon), value.startsWith(" ") ? value.slice(1) : value];
}

async function* textOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  for await (const piece of piecesOf(body)) yield decoder.decode(piece, { stream: true });
}

/** Splits text that arrives in pieces into lines. A carriage return at the end of a piece may be half of a line end. */
class Lines {
  readonly #max: number;
  #parts: string[] = [];
  #length = 0;
  #endsWithReturn = false;

  constructor(max: number) {
    this.#max = max;
  }

  *push(piece: string): Generator<string, void> {
    if (piece === "") return;
    const text = this.#endsWithReturn && piece.startsWith("\n") ? piece.slice(1) : piece;
    this.#endsWithReturn = piece.endsWith("\r");
    let from = 0;
    for (const { index, 0: end } of text.matchAll(LINE_END)) {
      this.#parts.push(text.slice(from, index));
      yield this.#parts.join("");
      this.#parts = [];
      this.#length = 0;
      from = index + end.length;
    }
    if (from === text.length) return;
    this.#parts.push(text.slice(from));
    this.#length += text.length - from;
    if (this.#length > this.#max) throw new TooLargeEvent("a line is too large");
  }
}
