import type { PlacedEvent } from "@svc/contracts";
import fc from "fast-check";
import { expect, it } from "vitest";
import { merged } from "../../src/events.ts";

const STARTED: PlacedEvent = {
  event: "started",
  session_id: "a".repeat(21),
  language: "python",
  version: "3",
};
const at = (event: "stdout" | "stderr", place: number, text: string): PlacedEvent => ({
  event,
  text,
  at: place,
});

it.each<[string, PlacedEvent[], PlacedEvent[]]>([
  ["nothing", [], []],
  ["what follows on each other", [at("stdout", 0, "a"), at("stdout", 1, "b")], [at("stdout", 0, "ab")]],
  [
    "not two outputs",
    [at("stdout", 0, "a"), at("stderr", 0, "b"), at("stdout", 1, "c")],
    [at("stdout", 0, "a"), at("stderr", 0, "b"), at("stdout", 1, "c")],
  ],
  [
    "not across a start",
    [at("stdout", 0, "a"), STARTED, at("stdout", 1, "b")],
    [at("stdout", 0, "a"), STARTED, at("stdout", 1, "b")],
  ],
  [
    "not across a gap",
    [at("stdout", 0, "a"), at("stdout", 2, "c")],
    [at("stdout", 0, "a"), at("stdout", 2, "c")],
  ],
  [
    "not a repetition",
    [at("stdout", 0, "a"), at("stdout", 0, "a")],
    [at("stdout", 0, "a"), at("stdout", 0, "a")],
  ],
])("merges %s", (_what, events, expected) => {
  expect(merged(events)).toEqual(expected);
});

it("keeps every text at its place", () => {
  const pieces = fc.array(fc.tuple(fc.constantFrom("stdout" as const, "stderr" as const), fc.string()));
  fc.assert(
    fc.property(pieces, (written) => {
      const place = { stdout: 0, stderr: 0 };
      const events = written.map(([stream, text]) => {
        const event = at(stream, place[stream], text);
        place[stream] += text.length;
        return event;
      });
      for (const stream of ["stdout", "stderr"] as const) {
        const joined = (all: PlacedEvent[]) =>
          all.map((event) => (event.event === stream ? event.text : "")).join("");
        expect(joined(merged(events))).toBe(joined(events));
      }
    }),
  );
});
