/** What passes the name rules is safe wherever a name goes: file systems, headers, addresses, JSON. */
import { posix } from "node:path";
import { hostileName } from "@svc/test-kit/storage/hostile-names";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { directoriesOf, fileNameProblem, findPathConflict } from "../../src/index.ts";

const RUNS = { numRuns: 5000 };
const passing = hostileName.filter((name) => fileNameProblem(name) === undefined);

describe("a name that passes", () => {
  it("stays below its directory, and every way of writing its path is the same", () => {
    fc.assert(
      fc.property(passing, (name) => {
        expect(posix.isAbsolute(name)).toBe(false);
        expect(posix.normalize(name)).toBe(name);
        expect(posix.join("/mnt/data", name)).toBe(`/mnt/data/${name}`);
        expect(posix.resolve("/mnt/data", name)).toBe(`/mnt/data/${name}`);
        expect(posix.relative("/mnt/data", `/mnt/data/${name}`)).toBe(name);
      }),
      RUNS,
    );
  });

  it("fits into the file system in bytes, as a whole and in each part", () => {
    fc.assert(
      fc.property(passing, (name) => {
        const segments = name.split("/");
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(4 * 256);
        expect(segments.length).toBeLessThanOrEqual(10);
        for (const segment of segments) {
          expect(Buffer.byteLength(segment)).toBeGreaterThan(0);
          expect(Buffer.byteLength(segment)).toBeLessThanOrEqual(255);
        }
      }),
      RUNS,
    );
  });

  it("is the same text after bytes, JSON and percent-encoding, and ends no header or line", () => {
    fc.assert(
      fc.property(passing, (name) => {
        expect(Buffer.from(name, "utf8").toString("utf8")).toBe(name);
        expect(JSON.parse(JSON.stringify(name))).toBe(name);
        expect(decodeURIComponent(encodeURIComponent(name))).toBe(name);
        expect(name).not.toMatch(/[\p{Cc}\p{Cs}\\]/u);
      }),
      RUNS,
    );
  });

  it("passes again, and so does every directory on its way and every end of its path", () => {
    fc.assert(
      fc.property(passing, (name) => {
        const segments = name.split("/");
        const parts = [
          name,
          ...directoriesOf(name),
          ...segments.map((_, at) => segments.slice(at).join("/")),
        ];
        for (const part of parts) expect(fileNameProblem(part), part).toBeUndefined();
      }),
      RUNS,
    );
  });

  it("is never taken for another that only looks like it", () => {
    const twins = [
      ["\u00e9.txt", "e\u0301.txt"],
      ["\u212a", "K"],
      ["a", "A"],
      ["a", "a "],
      ["a", "\u202ea"],
      ["a", "a\u200b"],
      ["\uff0e\uff0e", "\u2025"],
    ];
    for (const names of twins) {
      expect(names.map((name) => fileNameProblem(name))).toEqual([undefined, undefined]);
      expect(findPathConflict(names)).toBeUndefined();
    }
    fc.assert(
      fc.property(passing, (name) => {
        for (const form of ["NFC", "NFD", "NFKC", "NFKD"] as const) {
          const other = name.normalize(form);
          if (other === name) continue;
          expect(findPathConflict([name, other])?.problem).not.toBe("has the same path as another file");
        }
      }),
      RUNS,
    );
  });
});

describe("any name", () => {
  it("has the same answer with looser limits, unless a limit was its only problem", () => {
    fc.assert(
      fc.property(hostileName, (name) => {
        const problem = fileNameProblem(name);
        const loose = fileNameProblem(name, { maxLength: 4096, maxDepth: 64 });
        if (problem === undefined) expect(loose).toBeUndefined();
        else if (loose !== problem)
          expect(problem).toMatch(/must have at most \d+ (characters|path segments)/);
      }),
      RUNS,
    );
  });

  it("that would leave its directory does not pass", () => {
    fc.assert(
      fc.property(hostileName, (name) => {
        const path = posix.resolve("/mnt/data", name);
        if (!path.startsWith("/mnt/data/")) expect(fileNameProblem(name)).toBeDefined();
      }),
      RUNS,
    );
  });
});
