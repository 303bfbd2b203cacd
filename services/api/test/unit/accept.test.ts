import { prefersHtml, wantsEvents } from "@svc/api/accept";
import fc from "fast-check";
import { expect, it } from "vitest";

it.each<[string | undefined, boolean]>([
  [undefined, false],
  ["", false],
  ["*/*", false],
  ["text/*", false],
  ["application/json", false],
  ["text/event-stream", true],
  ["Text/Event-Stream", true],
  [" text/event-stream ; q=1.0 ", true],
  ["text/event-stream;q=0", false],
  ["text/event-stream;q=none", false],
  ["text/event-stream, application/json", false],
  ["text/event-stream, */*", false],
  ["text/event-stream, application/*;q=0.5", true],
  ["text/event-stream;q=0.5, application/json;q=0.4", true],
  ["text/event-stream;q=0.4, application/json;q=0.5", false],
  ["text/event-stream;q=0.5, application/json;q=0.1, */*;q=0.9", true],
  ["text/event-stream;charset=utf-8;q=0.5, application/json;q=0.4", true],
  ["x-text/event-stream", false],
  ["text/event-streams", false],
])("%j wants events: %j", (accept, expected) => {
  expect(wantsEvents(accept)).toBe(expected);
});

it.each<[string | undefined, boolean]>([
  [undefined, false],
  ["", false],
  ["*/*", false],
  ["application/json", false],
  ["text/html", true],
  ["text/html, ", true],
  ["Text/HTML;q=0.5", true],
  ["text/html;q=0", false],
  ["text/html;q=none", false],
  ["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", true],
  ["text/html;q=0.5, application/json", false],
  ["application/json;q=0.5, text/html", true],
  ["text/htmls", false],
])("%j is a browser's: %j", (accept, expected) => {
  expect(prefersHtml(accept)).toBe(expected);
});

it("no header breaks it", () => {
  const parts = fc.constantFrom(
    "text/event-stream",
    "*/*",
    "application/json",
    ";",
    ",",
    "q=",
    "q=1",
    "=",
    " ",
    '"',
    "0.5",
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(parts, fc.string()), { maxLength: 12 }), (words) =>
      [wantsEvents, prefersHtml].every((of) => typeof of(words.join("")) === "boolean"),
    ),
  );
});
