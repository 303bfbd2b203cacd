import { describe, expect, it } from "vitest";
import { isId, newId } from "../../src/index.ts";

describe("ids", () => {
  it("are 21 allowed characters and never the same twice", () => {
    const ids = Array.from({ length: 10_000 }, newId);
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_-]{21}$/);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("use every one of the 64 characters at every place", () => {
    const seen = Array.from({ length: 21 }, () => new Set<string>());
    for (let round = 0; round < 20_000; round++) {
      for (const [at, char] of [...newId()].entries()) seen[at]?.add(char);
    }
    for (const chars of seen) expect(chars.size).toBe(64);
  });

  it.each([
    "",
    "short",
    "V1StGXR8_Z5jdHi6B-myT\n",
    "V1StGXR8_Z5jdHi6B-my",
    "V1StGXR8_Z5jdHi6B-myTx",
    "V1StGXR8.Z5jdHi6B-myT",
    "123e4567-e89b-12d3-a456-426614174000",
    "../../../etc/passwd00",
    null,
    21,
    ["V1StGXR8_Z5jdHi6B-myT"],
  ])("%j is not an id", (text) => {
    expect(isId(text)).toBe(false);
  });

  it("the documented form is one", () => {
    expect(isId("V1StGXR8_Z5jdHi6B-myT")).toBe(true);
  });
});
