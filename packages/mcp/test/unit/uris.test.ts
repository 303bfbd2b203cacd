import { addressOf, fileUri, sessionFileUri } from "@svc/mcp/uris";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const ID = "V1StGXR8_Z5jdHi6B-myT";
const OTHER = "kd83HtQmZ0_4vYcPa7-Rn";

describe("addresses of files", () => {
  test("of a stored file name its session and its id", () => {
    expect(addressOf(fileUri({ session_id: ID, id: OTHER }))).toEqual({
      kind: "stored",
      session_id: ID,
      id: OTHER,
    });
  });

  test("of a session's file hold any name that a file has", () => {
    const segment = fc
      .string({ minLength: 1, unit: "grapheme" })
      .filter((text) => !/[/\0]/.test(text) && text.isWellFormed());
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), (segments) => {
        const name = segments.join("/");
        expect(addressOf(sessionFileUri(ID, name))).toEqual({ kind: "session", id: ID, name });
      }),
    );
  });

  test.each([
    "",
    "svc://files/",
    `svc://files/${ID}`,
    `svc://files/${ID}/x`,
    `svc://files/${ID}/${OTHER}/x`,
    "svc://sessions/x/y",
    `svc://sessions/${ID}/`,
    `svc://sessions/${ID}/%zz`,
    `https://files/${ID}/${OTHER}`,
  ])("%j is none", (uri) => {
    expect(addressOf(uri)).toBeUndefined();
  });
});
