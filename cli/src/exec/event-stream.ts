/** Server-sent events (WHATWG HTML, section 9.2.6) of pieces of text, however they are cut: names and data, without ids and retries. Pure. */

export interface ServerEvent {
  event: string;
  data: string;
}

const LINE_END = /\r\n|\n|\r/;

export async function* eventsOf(pieces: AsyncIterable<string>): AsyncGenerator<ServerEvent, void> {
  let name = "";
  let data: string[] = [];
  for await (const line of linesOf(pieces)) {
    if (line === "") {
      if (data.length > 0) yield { event: name || "message", data: data.join("\n") };
      [name, data] = ["", []];
      continue;
    }
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
}

/** Whole lines; what follows on the last line end is none. */
async function* linesOf(pieces: AsyncIterable<string>): AsyncGenerator<string, void> {
  let begun = "";
  for await (const piece of pieces) {
    // Most pieces end with a line; one that does not is looked through once more, with the rest of its line.
    const text = begun + piece;
    // A carriage return at the end may be the first half of a line end.
    const lines = text.replace(/\r$/, "").split(LINE_END);
    begun = (lines.pop() ?? "") + (text.endsWith("\r") ? "\r" : "");
    yield* lines;
  }
}
