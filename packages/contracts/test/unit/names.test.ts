import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_NAME_LIMITS, dirkeepDirectory, fileNameProblem, isDirkeep } from "../../src/index.ts";

const limits = DEFAULT_NAME_LIMITS;
const segment = fc
  .string({ unit: "binary", minLength: 1, maxLength: 60 })
  .map((text) => text.replace(/[\p{Cc}\p{Cs}/\\\ufffd]/gu, "x"))
  .filter((text) => text !== "." && text !== ".." && Buffer.byteLength(text) <= 255);
const goodName = fc
  .array(segment, { minLength: 1, maxLength: 10 })
  .map((segments) => segments.join("/"))
  .filter((name) => [...name].length <= 256);

describe("fileNameProblem", () => {
  it("accepts every relative path of clean segments", () => {
    fc.assert(fc.property(goodName, (name) => fileNameProblem(name, limits) === undefined));
  });

  it.each([
    "data.csv",
    ".hidden",
    "...",
    "a/.b/c",
    "..a/b..",
    " leading and trailing ",
    "naïve/日本語/🎉.txt",
    "line\u2028separator",
    "%2e%2e",
    "C:",
    "a/b/c/d/e/f/g/h/i/j",
  ])("accepts %j", (name) => {
    expect(fileNameProblem(name)).toBeUndefined();
  });

  it("refuses every name with a forbidden character, wherever it stands", () => {
    const forbidden = fc.constantFrom("\0", "\n", "\r", "\t", "\x1b", "\x7f", "\x80", "\x9f", "\\", "\ufffd");
    fc.assert(
      fc.property(goodName, forbidden, fc.nat(), (name, character, at) => {
        const chars = [...name].slice(0, 200);
        chars.splice(at % (chars.length + 1), 0, character);
        return fileNameProblem(chars.join(""), limits) !== undefined;
      }),
    );
  });

  it("refuses a lone surrogate, wherever it stands", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0xd800, max: 0xdfff }), (unit) => {
        const lone = String.fromCharCode(unit);
        expect(fileNameProblem(`a${lone}b`)).toBe("must be valid UTF-8");
        expect(fileNameProblem(`${lone}/b`)).toBe("must be valid UTF-8");
      }),
    );
  });

  it("refuses every path that could leave its place or names no file", () => {
    const bad = fc.constantFrom("", ".", "..");
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 4 }), bad, fc.nat(), (segments, evil, at) => {
        const path = [...segments];
        path.splice(at % (path.length + 1), 0, evil);
        return fileNameProblem(path.join("/")) !== undefined;
      }),
    );
  });

  it.each([
    ["/etc/passwd", "must be a relative path"],
    ["dir/", "must not end with a slash"],
    ["a//b", "must not have empty, . or .. segments"],
    ["a/../b", "must not have empty, . or .. segments"],
    ["./a", "must not have empty, . or .. segments"],
    ["", "must be a non-empty string"],
    ["a\\b", "must not contain backslashes or control characters"],
  ])("says what is wrong with %j", (name, problem) => {
    expect(fileNameProblem(name)).toBe(problem);
  });

  it.each([undefined, null, 5, {}, ["a"], new String("a")])("refuses %j, which is no string", (name) => {
    expect(fileNameProblem(name)).toBe("must be a non-empty string");
  });

  it("counts characters, not UTF-16 units, and accepts exactly the longest name", () => {
    const pairs = `${"🎉".repeat(63)}/`.repeat(4).slice(0, -1);
    expect([...pairs]).toHaveLength(255);
    expect(fileNameProblem(`${pairs}x`)).toBeUndefined();
    expect(fileNameProblem(`${pairs}xy`)).toBe("must have at most 256 characters");
    expect(fileNameProblem(`${"a".repeat(128)}/${"b".repeat(127)}`)).toBeUndefined();
    expect(fileNameProblem(`${"a".repeat(128)}/${"b".repeat(128)}`)).toBe("must have at most 256 characters");
  });

  it("refuses segments that no file system can hold", () => {
    expect(fileNameProblem("a".repeat(255))).toBeUndefined();
    expect(fileNameProblem("a".repeat(256))).toBe("must not have segments of more than 255 bytes");
    expect(fileNameProblem("é".repeat(128))).toBe("must not have segments of more than 255 bytes");
  });

  it("refuses more segments than allowed, and follows the limits it is given", () => {
    expect(fileNameProblem("a/b/c/d/e/f/g/h/i/j/k")).toBe("must have at most 10 path segments");
    expect(fileNameProblem("a/b", { maxLength: 256, maxDepth: 1 })).toBe("must have at most 1 path segments");
    expect(fileNameProblem("abc", { maxLength: 2, maxDepth: 10 })).toBe("must have at most 2 characters");
  });

  it("refuses a name of a whole request body without taking it apart", () => {
    const before = process.memoryUsage().heapUsed;
    expect(fileNameProblem("a".repeat(2 ** 24))).toBe("must have at most 256 characters");
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(2 ** 26);
  });

  it("gives the same verdict for any text and never throws", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (name) => {
        expect(fileNameProblem(name)).toBe(fileNameProblem(name));
      }),
    );
  });
});

describe(".dirkeep names", () => {
  it.each([
    [".dirkeep", true, ""],
    ["a/.dirkeep", true, "a"],
    ["a/b/.dirkeep", true, "a/b"],
  ])("%s asks for its directory", (name, expected, directory) => {
    expect(isDirkeep(name)).toBe(expected);
    expect(dirkeepDirectory(name)).toBe(directory);
  });

  it.each(["x.dirkeep", ".dirkeep/a", ".dirkeep2", "a/.DIRKEEP"])("%s is an ordinary file", (name) => {
    expect(isDirkeep(name)).toBe(false);
  });
});
