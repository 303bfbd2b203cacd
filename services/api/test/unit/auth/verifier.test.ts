import { createPublicKey, sign } from "node:crypto";
import { bearerToken, MAX_TOKEN_CHARS } from "@svc/api/auth/bearer";
import type { ClaimRules } from "@svc/api/auth/claims";
import { TokenRefused } from "@svc/api/auth/refused";
import { VerifiedTokens } from "@svc/api/auth/verified-tokens";
import { verifyToken } from "@svc/api/auth/verifier";
import type { VerificationKey } from "@svc/service-kit/credentials/key-text";
import {
  inputOf,
  KID,
  mintHmac,
  newSigner,
  part,
  rightClaims,
  seconds,
} from "@svc/test-kit/credentials/signer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const signer = newSigner();
const other = newSigner();
const rsa = newSigner("rsa");
const keys = new Map<string, VerificationKey>([
  [KID, { algorithm: "EdDSA", key: signer.publicKey }],
  ["other", { algorithm: "EdDSA", key: other.publicKey }],
  ["rsa", { algorithm: "RS256", key: rsa.publicKey }],
]);
const rules: ClaimRules = {
  issuer: "librechat",
  audiences: ["codeapi", "second"],
  skewSeconds: 30,
  maxTtlSeconds: 300,
  fallbackTenant: "legacy",
};
const verified = new VerifiedTokens();
const verify = (token: string, change: Partial<ClaimRules> = {}, now = seconds) =>
  verifyToken(token, { keys, rules: { ...rules, ...change }, verified, now });

async function causeOf(token: string, change: Partial<ClaimRules> = {}, now = seconds): Promise<string> {
  const outcome = await verify(token, change, now).catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(TokenRefused);
  return (outcome as TokenRefused).message;
}

describe("a right token", () => {
  it("names its principal by tenant and subject, and nothing else does", async () => {
    const claims = { role: "ADMIN", user_id: "x", plan_id: null, org_id: 7, chc_user_id: {}, unknown: [] };
    const caller = await verify(signer.mint({ claims }));
    expect(caller.principal).toEqual({ tenantId: "t1", userId: "u1" });
  });

  it.each([
    [{ header: { typ: undefined } }],
    [{ claims: { aud: "second" } }],
    [{ claims: { aud: ["elsewhere", "codeapi"] } }],
    [{ claims: { principal_source: "openid_reuse" } }],
    [{ claims: { jti: "j".repeat(256), sub: "ü 名:/%\n" } }],
  ])("may be %j", async (change) => {
    await expect(verify(signer.mint(change))).resolves.toHaveProperty("principal.tenantId", "t1");
  });

  it("may be used again, until it has expired, its key is gone or another one has its name, or the rules are others", async () => {
    const token = signer.mint();
    await verify(token);
    await verify(token);
    expect(await causeOf(token, {}, () => seconds() + 10_000)).toContain("expired");
    expect(await causeOf(token, { issuer: "elsewhere" })).toBe("another issuer");
    const withKeys = (known: Map<string, VerificationKey>) =>
      verifyToken(token, { keys: known, rules, verified, now: seconds });
    await expect(withKeys(new Map())).rejects.toMatchObject({ reason: "unknown_key" });
    const renamed = new Map([[KID, { algorithm: "EdDSA", key: other.publicKey } as const]]);
    for (let time = 0; time < 2; time++)
      await expect(withKeys(renamed)).rejects.toMatchObject({ reason: "bad_signature" });
    await verify(token);
  });

  it("is verified once while it is in use, among a thousand others; one that is refused is verified each time", async () => {
    const key: VerificationKey = { algorithm: "EdDSA", key: signer.publicKey };
    const tokens = new VerifiedTokens();
    const asked: string[] = [];
    const use = (name: string, isGood = true) =>
      tokens.payloadOf(name, key, async () => {
        asked.push(name);
        if (!isGood) throw new TokenRefused("bad_signature", "bad signature");
        return name;
      });
    for (let n = 0; n < 3000; n++) expect([await use("mine"), await use(`${n}`)]).toEqual(["mine", `${n}`]);
    expect(asked.filter((name) => name === "mine")).toEqual(["mine"]);
    await use("0");
    expect(asked.filter((name) => name === "0")).toEqual(["0", "0"]);
    for (let time = 0; time < 2; time++) await expect(use("bad", false)).rejects.toThrow(TokenRefused);
    expect(asked.filter((name) => name === "bad")).toEqual(["bad", "bad"]);
  });

  it("may be signed with RSA where the key is an RSA key", async () => {
    await verify(rsa.mint({ header: { kid: "rsa" } }));
  });
});

describe("a tenant", () => {
  it.each([undefined, null])(
    "that is %j is the configured one, and none in strict mode",
    async (tenant_id) => {
      const token = signer.mint({ claims: { tenant_id } });
      expect((await verify(token)).principal.tenantId).toBe("legacy");
      expect(await causeOf(token, { fallbackTenant: undefined })).toBe("no tenant");
    },
  );

  it.each(["", 5, ["t1"], "\ud800", "t".repeat(257)])("that is %j is refused", async (tenant_id) => {
    expect(await causeOf(signer.mint({ claims: { tenant_id } }))).toContain("tenant_id");
  });
});

describe("a claim", () => {
  const names = ["iss", "aud", "sub", "jti", "iat", "nbf", "exp", "principal_source", "auth_context_hash"];
  const cases = names.flatMap((name) =>
    [undefined, null, "", 0, true, {}, [], "1e9"]
      .filter((value) => !(value === 0 && ["iat", "nbf", "exp"].includes(name)))
      .map((value): [string, unknown] => [name, value]),
  );
  it.each(cases)("%s of %j is refused", async (name, value) => {
    if (value === "1e9" && ["sub", "jti", "auth_context_hash"].includes(name)) return;
    const cause = await causeOf(signer.mint({ claims: { [name]: value } }));
    expect(cause).toMatch(new RegExp(`${name}|another (issuer|audience)`));
  });

  it.each([
    [{ iss: "other" }, "another issuer"],
    [{ aud: "other" }, "another audience"],
    [{ aud: ["code", "codeapi "] }, "another audience"],
    [{ aud: ["codeapi", 5] }, "claim missing or wrong: aud"],
    [{ sub: "u".repeat(257) }, "claim missing or wrong: sub"],
    [{ sub: "\udfff" }, "claim missing or wrong: sub"],
    [{ jti: "j".repeat(257) }, "claim missing or wrong: jti"],
    [{ principal_source: "password" }, "claim missing or wrong: principal_source"],
  ])("%j is refused", async (claims, cause) => {
    expect(await causeOf(signer.mint({ claims }))).toBe(cause);
  });

  it.each([null, [], "text", 5, true])("set of %j is refused", async (payload) => {
    const input = inputOf({ alg: "EdDSA", kid: KID }, payload);
    const signature = sign(null, Buffer.from(input), signer.privateKey).toString("base64url");
    expect(await causeOf(`${input}.${signature}`)).toContain("claim missing or wrong");
  });
});

describe("time", () => {
  const token = (claims: Record<string, number>) => signer.mint({ claims });
  const base = { iat: 1_000_000, nbf: 1_000_000, exp: 1_000_300 };
  const at = (time: number) => () => time;

  it.each([base.iat - 30, base.iat, base.exp, base.exp + 29.999])("%d is within", async (time) => {
    await verify(token(base), {}, at(time));
  });

  it.each([
    [base, base.exp + 30, "expired"],
    [base, base.iat - 30.001, "not valid yet"],
    [{ ...base, nbf: base.nbf - 100 }, base.iat - 30.001, "issued in the future"],
    [{ ...base, nbf: base.exp + 100 }, base.exp, "not valid yet"],
    [{ ...base, exp: base.iat + 301 }, base.iat, "lives too long"],
    [{ ...base, exp: base.iat }, base.iat, "expires before it was issued"],
    [{ ...base, exp: base.iat - 10 }, base.iat, "expires before it was issued"],
    [{ iat: -1e308, nbf: 0, exp: 1e308 }, 1e6, "lives too long"],
  ])("%j at %d is refused", async (claims, time, cause) => {
    expect(await causeOf(token(claims), {}, at(time))).toBe(cause);
  });
});

describe("a header", () => {
  it.each([
    [{ kid: undefined }, "header missing or wrong: kid"],
    [{ kid: "" }, "header missing or wrong: kid"],
    [{ kid: 5 }, "header missing or wrong: kid"],
    [{ kid: "k2" }, 'unknown kid "k2"'],
    [{ kid: "../../etc/passwd" }, 'unknown kid "../../etc/passwd"'],
    [{ kid: "__proto__" }, 'unknown kid "__proto__"'],
    [{ kid: "k".repeat(1000) }, `unknown kid "${"k".repeat(64)}"`],
    [{ typ: "at+jwt" }, "header missing or wrong: typ"],
    [{ typ: "jwt" }, "header missing or wrong: typ"],
    [{ alg: undefined }, "header missing or wrong: alg"],
    [{ alg: "none" }, "an algorithm that does not fit the key"],
    [{ alg: "eddsa" }, "an algorithm that does not fit the key"],
    [{ alg: "RS256" }, "an algorithm that does not fit the key"],
    [{ kid: "rsa" }, "an algorithm that does not fit the key"],
    [{ kid: "other" }, "bad signature"],
    [{ crit: ["exp"] }, "header missing or wrong: crit"],
    [{ b64: false, crit: ["b64"] }, "header missing or wrong: crit, b64"],
  ])("%j is refused", async (header, cause) => {
    expect(await causeOf(signer.mint({ header }))).toBe(cause);
  });

  it("that brings its own key gets no use of it", async () => {
    const jwk = createPublicKey(other.pem).export({ format: "jwk" });
    expect(await causeOf(other.mint({ header: { jwk, jku: "http://127.0.0.1/" } }))).toBe("bad signature");
  });

  it("of HS256 with the public key as the secret is refused, in every spelling of the key", async () => {
    const der = signer.publicKey.export({ type: "spki", format: "der" });
    for (const secret of [signer.pem, signer.pem.trim(), der, der.subarray(-32), rsa.pem, ""]) {
      for (const kid of [KID, "rsa"]) {
        expect(await causeOf(mintHmac(secret, { header: { kid } }))).toBe(
          "an algorithm that does not fit the key",
        );
        await causeOf(mintHmac(secret, { header: { kid, alg: keys.get(kid)?.algorithm } }));
      }
    }
  });

  it("of alg none is refused with and without a signature", async () => {
    const input = inputOf({ alg: "none", kid: KID }, rightClaims());
    for (const token of [`${input}.`, input, `${input}.AAAA`]) await causeOf(token);
  });
});

describe("a changed token", () => {
  const token = signer.mint();

  it("is refused whatever bit is flipped", async () => {
    for (let at = 0; at < token.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const bytes = Buffer.from(token, "latin1");
        bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
        await causeOf(bytes.toString("latin1"));
      }
    }
  });

  it("is refused whatever letter stands at the end of the signature", async () => {
    for (const letter of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=") {
      if (letter !== token.at(-1)) await causeOf(token.slice(0, -1) + letter);
    }
  });

  it("is refused after any edit", async () => {
    const edit = fc.record({ at: fc.nat(token.length), cut: fc.nat(8), put: fc.string({ maxLength: 8 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 3 }), async (edits) => {
        let text = token;
        for (const { at, cut, put } of edits) text = text.slice(0, at) + put + text.slice(at + cut);
        if (text !== token) await causeOf(text);
      }),
      { numRuns: 2000 },
    );
  });

  it("is refused when it is arbitrary text or arbitrary JSON", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.json(), fc.json(), async (text, header, payload) => {
        await causeOf(text);
        await causeOf(`${part(JSON.parse(header))}.${part(JSON.parse(payload))}.${part(text)}`);
      }),
      { numRuns: 500 },
    );
  });

  it("is refused when it is put together from two right ones", async () => {
    const [a, b] = [token.split("."), signer.mint({ claims: { sub: "u2" } }).split(".")];
    await causeOf([a[0], b[1], a[2]].join("."));
    await causeOf([a[0], a[1], b[2]].join("."));
  });
});

describe("the Authorization header", () => {
  const token = signer.mint();
  it.each(["Bearer", "bearer", "BEARER", "Bearer  "])("carries a token behind %j", (scheme) => {
    expect(bearerToken([`${scheme} ${token}`])).toBe(token);
  });

  it.each([
    [undefined],
    [[]],
    [[""]],
    [["Bearer"]],
    [["Bearer "]],
    [[token]],
    [[`Basic ${token}`]],
    [[`Bearer ${token} x`]],
    [[`Bearer ${token}, Bearer ${token}`]],
    [[`Bearer ${token}=`]],
    [[`Bearer ${token}.`]],
    [[`Bearer "${token}"`]],
    [[`Bearer\t${token}`]],
    [[`Bearer ${token}`, `Bearer ${token}`]],
    [[`Bearer ${"a".repeat(MAX_TOKEN_CHARS)}.b.c`]],
  ])("%j is refused", (values) => {
    expect(() => bearerToken(values)).toThrow(TokenRefused);
  });
});
