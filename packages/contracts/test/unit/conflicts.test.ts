import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findPathConflict } from "../../src/index.ts";

const path = fc
  .array(fc.constantFrom("a", "b", "c", "a.b"), { minLength: 1, maxLength: 4 })
  .map((segments) => segments.join("/"));
const paths = fc.array(path, { maxLength: 12 });

const clash = (left: string, right: string) =>
  left === right || left.startsWith(`${right}/`) || right.startsWith(`${left}/`);

describe("findPathConflict", () => {
  it("finds a conflict exactly when two paths cannot both exist", () => {
    fc.assert(
      fc.property(paths, (all) => {
        const exists = all.some((left, i) => all.some((right, j) => i < j && clash(left, right)));
        expect(findPathConflict(all) !== undefined).toBe(exists);
      }),
    );
  });

  it("names two different indices, the lower first, whose paths do conflict", () => {
    fc.assert(
      fc.property(paths, (all) => {
        const conflict = findPathConflict(all);
        if (conflict === undefined) return;
        expect(conflict.first).toBeLessThan(conflict.second);
        expect(clash(all[conflict.first] ?? "", all[conflict.second] ?? "")).toBe(true);
      }),
    );
  });

  it.each([
    [["a", "b", "a"], 0, 2, "has the same path as another file"],
    [["a/b", "x", "a"], 0, 2, "is a directory of another file's path"],
    [["a", "a/b/c/d"], 0, 1, "is a directory of another file's path"],
  ])("says why %j conflict", (all, first, second, problem) => {
    expect(findPathConflict(all)).toEqual({ first, second, problem });
  });

  it.each([[["a", "ab", "a.b", "A"]], [["a/b", "a/c", "ab/c"]], [[]], [["__proto__", "constructor/x"]]])(
    "lets %j stand together",
    (all) => {
      expect(findPathConflict(all)).toBeUndefined();
    },
  );
});
