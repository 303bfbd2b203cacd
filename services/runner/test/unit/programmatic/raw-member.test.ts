import { rawMember } from "@svc/runner/programmatic/tool-call-client";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

describe("the text of a member", () => {
  it("is the text of its value, for any object", () => {
    const property = fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.boolean(),
      (object, spaced) => {
        const text = JSON.stringify(object, undefined, spaced ? 2 : undefined);
        // Not the names that JSON.parse finds: V8 13.6 takes one like "\n" for a backslash where an earlier object had that.
        for (const [key, value] of Object.entries(object)) {
          expect(JSON.parse(rawMember(text, key) as string)).toEqual(JSON.parse(JSON.stringify(value)));
        }
        expect(rawMember(text, "not there, surely")).toBeUndefined();
      },
    );
    fc.assert(property);
  });

  it("keeps what parsing would lose", () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    for (const value of ["12345678901234567890", "1.0", '{"b":1,"a":2,"b":3}', '"\\u0041\\"}"', deep]) {
      expect(rawMember(`{"success":true , "result" : ${value}\n,"is_error":false}`, "result")).toBe(value);
    }
  });

  it("is the last one of two, as in a parsed object", () => {
    expect(rawMember('{"result":1,"result":2}', "result")).toBe("2");
    expect(rawMember('{"a":{"result":1}}', "result")).toBeUndefined();
    expect(rawMember("{}", "result")).toBeUndefined();
  });
});
