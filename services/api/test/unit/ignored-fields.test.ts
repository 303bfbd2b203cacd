import { describe, expect, it } from "vitest";
import { ignoredFields } from "../../src/exec/ignored-fields.ts";

const KNOWN = new Set(["code", "lang"]);

describe("the header of ignored fields", () => {
  it("names unknown fields in the order of the body", () => {
    expect(ignoredFields({ code: "", timeout_ms: 5, lang: "py", stream: true }, KNOWN)).toBe(
      "timeout_ms, stream",
    );
  });

  it.each([[{ code: "" }], [{}], [null], [undefined], ["text"], [7], [["code"]]])(
    "%j has no unknown field",
    (body) => {
      expect(ignoredFields(body, KNOWN)).toBeUndefined();
    },
  );

  it.each([
    ["a\r\nSet-Cookie: x=1", "a??Set-Cookie:?x=1"],
    ["a,b", "a?b"],
    ["naïve", "na?ve"],
    ["\0", "?"],
    ["", "?"],
    ["😀", "??"],
    ["x".repeat(100_000), "x".repeat(64)],
    ["\u007f", "?"],
  ])("the hostile name %j is shown harmlessly", (name, shown) => {
    expect(ignoredFields({ [name]: 1 }, KNOWN)).toBe(shown);
  });

  it.each(["__proto__", "constructor", "toString"])("%s is a name like any other", (name) => {
    expect(ignoredFields(JSON.parse(`{"${name}": 1}`), KNOWN)).toBe(name);
  });

  it("of very many names the first 20 are told", () => {
    const body = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`f${at}`, at]));
    const names = ignoredFields(body, KNOWN)?.split(", ");
    expect(names).toHaveLength(20);
    expect(names?.at(-1)).toBe("f19");
  });
});
