/** Which credential a request carries, and what becomes of an API key that is not exactly one of the file. */

import { ApiKeyIndex } from "@svc/api/auth/api-key-index";
import { type CredentialHeaders, credentialOf } from "@svc/api/auth/credential";
import { TokenRefused } from "@svc/api/auth/refused";
import { apiKeyDigest } from "@svc/contracts";
import { apiKeyRecord, newApiKey } from "@svc/test-kit/credentials/api-keys";
import { generator, mutate, newSeed } from "@svc/test-kit/credentials/mutations";
import { newSigner } from "@svc/test-kit/credentials/signer";
import { thrown } from "@svc/test-kit/thrown";
import { describe, expect, it } from "vitest";

const NOW = Date.parse("2026-11-25T00:00:00Z");
const [key, other] = [newApiKey(), newApiKey()];
const token = newSigner().mint();

const reasonOf = (headers: CredentialHeaders) => thrown(TokenRefused, () => credentialOf(headers))?.reason;

describe("a request", () => {
  it.each<[string, CredentialHeaders, object]>([
    ["a token", { authorization: [`Bearer ${token}`] }, { kind: "token", token }],
    ["an API key", { authorization: [`Bearer ${key}`] }, { kind: "api key", key }],
    ["an API key, scheme in any case", { authorization: [`bEARER   ${key}`] }, { kind: "api key", key }],
    ["an API key in its own header", { "x-api-key": [key] }, { kind: "api key", key }],
    ["one API key twice", { authorization: [`Bearer ${key}`], "x-api-key": [key] }, { kind: "api key", key }],
    [
      "a token beside an empty header",
      { authorization: [`Bearer ${token}`], "x-api-key": [""] },
      { kind: "token", token },
    ],
  ])("may carry %s", (_what, headers, credential) => {
    expect(credentialOf(headers)).toEqual(credential);
  });

  it.each<[string, CredentialHeaders, string]>([
    ["no header", {}, "missing"],
    ["an empty key header alone", { "x-api-key": [""] }, "missing"],
    ["two API keys", { authorization: [`Bearer ${key}`], "x-api-key": [other] }, "two_credentials"],
    ["a token and an API key", { authorization: [`Bearer ${token}`], "x-api-key": [key] }, "two_credentials"],
    ["a token and nonsense", { authorization: [`Bearer ${token}`], "x-api-key": ["k"] }, "malformed"],
    ["nonsense and an API key", { authorization: ["Basic a"], "x-api-key": [key] }, "malformed"],
    ["the key header twice", { "x-api-key": [key, key] }, "malformed"],
    ["Authorization twice", { authorization: [`Bearer ${key}`, `Bearer ${key}`] }, "malformed"],
    ["a token in the key header", { "x-api-key": [token] }, "malformed"],
    ["a bearer scheme in the key header", { "x-api-key": [`Bearer ${key}`] }, "malformed"],
    ["an API key without scheme", { authorization: [key] }, "malformed"],
    ["two keys in a list", { "x-api-key": [`${key}, ${key}`] }, "malformed"],
    ["a short key", { authorization: [`Bearer ${key.slice(0, -1)}`] }, "malformed"],
    ["the prefix alone", { "x-api-key": ["svc_"] }, "malformed"],
    ["a key of a megabyte", { "x-api-key": [`svc_${"a".repeat(1 << 20)}`] }, "malformed"],
    ["a bearer of a megabyte", { authorization: [`Bearer svc_${"a".repeat(1 << 20)}`] }, "malformed"],
    ["blanks of a megabyte", { authorization: [`Bearer ${" ".repeat(1 << 20)}x`] }, "malformed"],
  ])("with %s is refused", (_what, headers, reason) => {
    expect(reasonOf(headers)).toBe(reason);
  });
});

describe("an API key", () => {
  const [old, gone] = [newApiKey(), newApiKey()];
  const index = new ApiKeyIndex([
    apiKeyRecord(key, { user: "alice", plan: "pro" }),
    apiKeyRecord(other, { tenant: "t2", user: "bob" }),
    apiKeyRecord(old, { expires_at: "2026-11-24T23:59:59Z" }),
    apiKeyRecord(gone, { revoked_at: "2026-11-24T11:00:00Z" }),
  ]);

  it("names the principal and the plan of its record", () => {
    expect(index.callerOf(key, NOW)).toMatchObject({
      principal: { tenantId: "t1", userId: "alice" },
      planId: "pro",
    });
    expect(index.callerOf(other, NOW)).toMatchObject({
      principal: { tenantId: "t2", userId: "bob" },
      planId: undefined,
    });
  });

  it.each([
    ["is not in the file", newApiKey(), "unknown_api_key"],
    ["has expired", old, "expired"],
    ["was revoked", gone, "revoked"],
  ])("that %s is refused, and the cause does not show it", (_what, shown, reason) => {
    const refusal = thrown(TokenRefused, () => index.callerOf(shown, NOW));
    expect(refusal?.reason).toBe(reason);
    expect(refusal?.message).not.toContain(shown.slice(4, 20));
  });

  it("is no digest of the file", () => {
    for (const sha256 of [apiKeyDigest(key), apiKeyDigest(other)]) {
      expect(reasonOf({ "x-api-key": [sha256] })).toBe("malformed");
      const wrapped = `svc_${Buffer.from(sha256, "hex").toString("base64url")}`;
      expect(thrown(TokenRefused, () => index.callerOf(wrapped, NOW))?.reason).toBe("unknown_api_key");
    }
  });

  it("is refused after each of 5000 changes", () => {
    const seed = newSeed();
    const random = generator(seed);
    const originals = [key, other];
    const accepted: string[] = [];
    for (let at = 0; at < 5000; at++) {
      const mutant = mutate(originals[at % 2] as string, originals, random);
      const headers = at % 4 < 2 ? { "x-api-key": [mutant] } : { authorization: [`Bearer ${mutant}`] };
      try {
        const credential = credentialOf(headers);
        if (credential.kind === "token") continue;
        index.callerOf(credential.key, NOW);
        if (!originals.includes(mutant.trim())) accepted.push(mutant);
      } catch (error) {
        if (!(error instanceof TokenRefused)) throw error;
      }
    }
    expect(accepted, `seed ${seed}`).toEqual([]);
  });
});
