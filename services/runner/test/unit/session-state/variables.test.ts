import { droppedNotes, MAX_HEADER_BYTES, parseHeader } from "@svc/runner/session-state/variables";
import { describe, expect, it } from "vitest";

const NOTHING = { names: [], dropped: [] };
const lineOf = (header: unknown) => Buffer.from(`${JSON.stringify(header)}\n\x80\x05pickled`);

describe("the first line of a file of variables", () => {
  it("tells which variables were saved, and which were not", () => {
    const header = { v: 1, names: ["a", "b"], dropped: [{ name: "f", reason: "cannot pickle a socket" }] };
    expect(parseHeader(lineOf(header))).toEqual({ names: ["a", "b"], dropped: header.dropped });
  });

  it.each([
    ["an empty file", Buffer.alloc(0)],
    ["no line", Buffer.from('{"names":[],"dropped":[]}')],
    ["no JSON", Buffer.from("cos\nsystem\n(S'id'\ntR.")],
    ["bytes", Buffer.from("\xff\xfe\x00\n", "latin1")],
    ["another shape", lineOf({ names: "a", dropped: [] })],
    ["dropped ones without a reason", lineOf({ names: [], dropped: [{ name: "a" }] })],
    ["deep nesting", Buffer.from(`${"[".repeat(30_000)}\n`)],
    ["a line that is too long", Buffer.from(`{"names":["${"x".repeat(MAX_HEADER_BYTES)}"],"dropped":[]}\n`)],
  ])("says nothing when it is %s", (_, bytes) => {
    expect(parseHeader(bytes)).toEqual(NOTHING);
  });

  it("is cut to 100 entries of 200 characters, without control characters", () => {
    const long = `\u001b[1m\n${"x".repeat(200)}`;
    const dropped = Array.from({ length: 110 }, () => ({ name: long, reason: long }));
    const header = parseHeader(lineOf({ names: [7, long, ...Array(150).fill("n")], dropped }));
    const cut = `\ufffd[1m\ufffd${"x".repeat(195)}`;
    expect(header.names).toEqual([cut, ...Array(98).fill("n")]);
    expect(header.dropped).toEqual(Array(100).fill({ name: cut, reason: cut }));
  });
});

describe("the note on variables that were not kept", () => {
  it("is none when all were", () => expect(droppedNotes([])).toEqual([]));

  it("names five and counts the rest", () => {
    const dropped = ["a", "b", "c", "d", "e", "f", "g"].map((name) => ({ name, reason: "r" }));
    expect(droppedNotes(dropped)).toEqual([
      "Variables not kept: a (r), b (r), c (r), d (r), e (r) and 2 more",
    ]);
  });
});
