import { newId } from "@svc/contracts";
import { grantWith } from "@svc/test-kit/credentials/grants";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { thrown } from "@svc/test-kit/thrown";
import { describe, expect, it } from "vitest";
import { openCallback, sealCallback, sealGrant, sealKeys, TokenRefused } from "../../src/index.ts";

const NOW = 1_800_000_000;
const keys = sealKeys(newSecret());
const callback = {
  grant_id: newId(),
  exec_id: newId(),
  session_id: newId(),
  callback_token: "the raw token",
  allowed_tool_names: ["add", "look up", 'rm "-rf"'],
};

const reasonOf = (token: string, now: number, using = keys) =>
  thrown(TokenRefused, () => openCallback(using, token, now))?.reason;

describe("a callback token", () => {
  it("opens to what was sealed, and shows none of it", () => {
    const token = sealCallback(keys, callback, NOW, NOW + 60);
    expect(openCallback(keys, token, NOW)).toEqual({
      ...callback,
      v: 1,
      typ: "ptc-callback",
      iat: NOW,
      exp: NOW + 60,
    });
    expect(Buffer.from(token, "base64url").toString("latin1")).not.toContain("raw token");
  });

  it("is good until it expires, for this secret, and is no grant, nor is a grant one", () => {
    const token = sealCallback(keys, callback, NOW, NOW + 60);
    expect(reasonOf(token, NOW + 90)).toBeUndefined();
    expect(reasonOf(token, NOW + 91)).toBe("expired");
    expect(reasonOf(token, NOW - 31)).toBe("malformed");
    expect(reasonOf(token, NOW, sealKeys(newSecret()))).toBe("malformed");
    expect(reasonOf(sealGrant(keys, grantWith({}, NOW)), NOW)).toBe("wrong_type");
  });

  it("keeps its own type and times whatever it is given with them", () => {
    const given = { ...callback, typ: "grant", iat: 1, exp: NOW * 2 };
    expect(openCallback(keys, sealCallback(keys, given, NOW, NOW + 60), NOW)).toMatchObject({
      typ: "ptc-callback",
      exp: NOW + 60,
    });
  });
});
