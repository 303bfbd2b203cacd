import { describe, expect, test } from "vitest";
import { answerFor } from "../../src/conditions.ts";

const record = { etag: "abc", lastModified: "2026-01-31T10:00:00.789Z", size: 10 };
const SAME = "Sat, 31 Jan 2026 10:00:00 GMT";
const BEFORE = "Sat, 31 Jan 2026 09:59:59 GMT";
const AFTER = "Sat, 31 Jan 2026 10:00:01 GMT";

describe("conditions", () => {
  test.each([
    [{}, 200],
    [{ "if-none-match": '"abc"' }, 304],
    [{ "if-none-match": 'W/"abc"' }, 304],
    [{ "if-none-match": '"x", "abc"' }, 304],
    [{ "if-none-match": "*" }, 304],
    [{ "if-none-match": '"x"' }, 200],
    [{ "if-none-match": "abc" }, 200],
    [{ "if-none-match": "" }, 200],
    [{ "if-modified-since": SAME }, 304],
    [{ "if-modified-since": AFTER }, 304],
    [{ "if-modified-since": BEFORE }, 200],
    [{ "if-modified-since": "yesterday, about noon" }, 200],
    [{ "if-none-match": '"x"', "if-modified-since": AFTER }, 200],
    [{ "if-none-match": '"abc"', "if-modified-since": BEFORE }, 304],
  ])("%j is answered with %i, for GET and HEAD", (headers, status) => {
    expect(answerFor("GET", headers, record)).toEqual({ status });
    expect(answerFor("HEAD", headers, record)).toEqual({ status });
  });

  test.each([
    [undefined, 206],
    ['"abc"', 206],
    ['W/"abc"', 200],
    ['"x"', 200],
    [SAME, 206],
    [BEFORE, 200],
    [AFTER, 200],
    ["nonsense", 200],
    ["", 200],
  ])("a range with If-Range %s is answered with %i", (ifRange, status) => {
    const headers = { range: "bytes=0-3", ...(ifRange === undefined ? {} : { "if-range": ifRange }) };
    expect(answerFor("GET", headers, record).status).toBe(status);
  });

  test("an unchanged file is 304 although a range was asked for", () => {
    expect(answerFor("GET", { range: "bytes=0-3", "if-none-match": '"abc"' }, record)).toEqual({
      status: 304,
    });
  });

  test("a range after the end is 416, but a HEAD has no range", () => {
    expect(answerFor("GET", { range: "bytes=10-" }, record)).toEqual({ status: 416 });
    expect(answerFor("HEAD", { range: "bytes=10-" }, record)).toEqual({ status: 200 });
  });
});
