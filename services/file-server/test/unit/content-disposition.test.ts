import { fileNameProblem } from "@svc/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attachment } from "../../src/content-disposition.ts";

const PARTS = /^attachment; filename="([^"]*)"; filename\*=UTF-8''([^;]*)$/;
/** The characters that RFC 5987 lets stand for themselves. */
const EXTENDED = /^(?:[A-Za-z0-9$&+.^_`|~#-]|%[0-9A-F]{2})*$/;

describe("Content-Disposition", () => {
  test.each([
    ["plot.png", `attachment; filename="plot.png"; filename*=UTF-8''plot.png`],
    ["a/b.csv", `attachment; filename="a_b.csv"; filename*=UTF-8''a%2Fb.csv`],
    ["dä (1).txt", `attachment; filename="d_ (1).txt"; filename*=UTF-8''d%C3%A4%20%281%29.txt`],
    [`x"y';%41.txt`, `attachment; filename="x_y';_41.txt"; filename*=UTF-8''x%22y%27%3B%2541.txt`],
    ["!*'()", `attachment; filename="!*'()"; filename*=UTF-8''%21%2A%27%28%29`],
    ["😀", `attachment; filename="_"; filename*=UTF-8''%F0%9F%98%80`],
  ])("of %s", (name, header) => {
    expect(attachment(name)).toBe(header);
  });

  test("every allowed name gives one well-formed line from which it can be read back exactly", () => {
    const names = fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(names, (name) => {
        fc.pre(fileNameProblem(name) === undefined);
        const header = attachment(name);
        expect(header).toMatch(/^[\x20-\x7e]*$/);
        const [, ascii = "", extended = ""] = PARTS.exec(header) ?? [];
        expect(extended).toMatch(EXTENDED);
        expect(decodeURIComponent(extended)).toBe(name);
        expect(ascii).not.toMatch(/["\\/%]/);
        expect(ascii).not.toBe("");
      }),
    );
  });
});
