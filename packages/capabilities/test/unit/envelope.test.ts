import { createCipheriv, createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { thrown } from "@svc/test-kit/thrown";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CLOCK_SKEW_SECONDS,
  MAX_TOKEN_CHARS,
  open,
  type RefusalReason,
  seal,
  sealKeys,
  TokenRefused,
  type TokenType,
} from "../../src/index.ts";

const NOW = 1_800_000_000;
const SECRET = "current-secret-of-at-least-32-bytes";
const keys = sealKeys(SECRET);
const types = ["grant", "session", "object", "ptc-callback"] as const;
const envelope = (typ: TokenType = "session") => ({ v: 1 as const, typ, iat: NOW, exp: NOW + 60 });

/** Why a token is refused; undefined when it opens. Anything but a refusal fails the test. */
function refusal(
  token: unknown,
  now = NOW,
  typ: TokenType = "session",
  by = keys,
): RefusalReason | undefined {
  return thrown(TokenRefused, () => open(by, token, typ, now))?.reason;
}

/** A token with the given plain text and associated data under our key. */
function forge(text: string, data = "svc-egress-grant:v1"): string {
  const iv = Buffer.alloc(12, 7);
  const key = createHash("sha256").update(SECRET).digest();
  const cipher = createCipheriv("aes-256-gcm", key, iv);
  cipher.setAAD(Buffer.from(data));
  const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return ["ceg1", ...[iv, body, cipher.getAuthTag()].map((part) => part.toString("base64url"))].join(".");
}

describe("a sealed token", () => {
  it("gives its content back", () => {
    const content = fc.dictionary(
      fc.string({ maxLength: 8 }).filter((key) => !["v", "typ", "iat", "exp", "__proto__"].includes(key)),
      fc.oneof(fc.string({ unit: "grapheme" }), fc.integer(), fc.boolean(), fc.array(fc.string())),
    );
    fc.assert(
      fc.property(fc.constantFrom(...types), content, (typ, extra) => {
        const sealed = { ...extra, ...envelope(typ) };
        expect(open(keys, seal(keys, sealed), typ, NOW)).toEqual(sealed);
      }),
    );
  });

  it("has the documented form and shows nothing of its content", () => {
    const token = seal(keys, { ...envelope(), session_id: "visible-session-id" });
    expect(token).toMatch(/^ceg1\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{22}$/);
    const bytes = token.split(".").map((part) => Buffer.from(part, "base64url").toString("latin1"));
    expect(bytes.join()).not.toContain("visible");
  });

  it("differs from every other token of the same content", () => {
    const tokens = Array.from({ length: 1000 }, () => seal(keys, envelope()));
    expect(new Set(tokens).size).toBe(1000);
    expect(new Set(tokens.map((token) => token.split(".")[1])).size).toBe(1000);
  });

  it("is made as documented: SHA-256 of the secret as the key, fixed associated data", () => {
    expect(refusal(forge(JSON.stringify(envelope())))).toBeUndefined();
    expect(refusal(forge(JSON.stringify(envelope()), "svc-egress-grant:v2"))).toBe("malformed");
    expect(refusal(forge(JSON.stringify(envelope()), ""))).toBe("malformed");
  });
});

describe("a changed token", () => {
  const token = seal(keys, { ...envelope(), session_id: "V1StGXR8_Z5jdHi6B-myT", dir: "read" });
  const parts = token.split(".");
  const rebuilt = (at: number, bytes: Buffer) => parts.with(at, bytes.toString("base64url")).join(".");

  it("is malformed for a flip of any single bit of any part", () => {
    let tried = 0;
    for (const at of [1, 2, 3]) {
      const bytes = Buffer.from(parts[at] ?? "", "base64url");
      for (let byte = 0; byte < bytes.length; byte++) {
        for (let bit = 0; bit < 8; bit++) {
          const changed = Buffer.from(bytes);
          changed.writeUInt8(changed.readUInt8(byte) ^ (1 << bit), byte);
          expect(refusal(rebuilt(at, changed))).toBe("malformed");
          tried++;
        }
      }
    }
    expect(tried).toBeGreaterThan(800);
  });

  it("is malformed when any one character is another one, stray bits of the encoding included", () => {
    const alphabet = "ABab01_-.=+/ \n%";
    for (let at = 0; at < token.length; at++) {
      for (const char of alphabet) {
        if (token[at] === char) continue;
        expect(refusal(token.slice(0, at) + char + token.slice(at + 1))).toBe("malformed");
      }
    }
  });

  it("is malformed when its last characters carry bits that decode to the same bytes", () => {
    const last = token.at(-1) as string;
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const same = [...alphabet].filter((char) => {
      const decoded = Buffer.from((parts[3] ?? "").slice(0, -1) + char, "base64url");
      return char !== last && decoded.equals(Buffer.from(parts[3] ?? "", "base64url"));
    });
    expect(same.length).toBeGreaterThan(0);
    for (const char of same) expect(refusal(token.slice(0, -1) + char)).toBe("malformed");
  });

  it("is malformed for ten thousand mutations, and never anything but refused", () => {
    const mutation = fc.tuple(
      fc.constantFrom("delete", "double", "swap", "insert", "cut", "append"),
      fc.nat({ max: token.length - 1 }),
      fc.nat({ max: token.length - 1 }),
      fc.string({ minLength: 1, maxLength: 3 }),
    );
    const mutate = ([kind, a, b, text]: [string, number, number, string]): string => {
      const [from, to] = [Math.min(a, b), Math.max(a, b) + 1];
      if (kind === "delete") return token.slice(0, from) + token.slice(to);
      if (kind === "double") return token.slice(0, to) + token.slice(from);
      if (kind === "insert") return token.slice(0, a) + text + token.slice(a);
      if (kind === "cut") return token.slice(0, a);
      if (kind === "append") return token + text;
      const chars = [...token];
      [chars[a], chars[b]] = [chars[b] as string, chars[a] as string];
      return chars.join("");
    };
    fc.assert(
      fc.property(mutation, (how) => {
        const changed = mutate(how);
        if (changed !== token) expect(refusal(changed)).toBe("malformed");
      }),
      { numRuns: 10_000 },
    );
  });

  it("is malformed with parts of two genuine tokens", () => {
    const other = seal(keys, { ...envelope(), session_id: "AAAAAAAAAAAAAAAAAAAAA", dir: "read" }).split(".");
    for (const at of [1, 2, 3])
      expect(refusal(parts.with(at, other[at] as string).join("."))).toBe("malformed");
  });

  it.each([
    undefined,
    null,
    "",
    5,
    {},
    [token],
    "ceg1",
    "ceg1...",
    "ceg1.a.b.c",
    token.replace("ceg1", "ceg2"),
    token.replace("ceg1", "CEG1"),
    `${token}.`,
    `${token}=`,
    ` ${token}`,
    `Bearer ${token}`,
    `ceg1.${"A".repeat(16)}.${"A".repeat(MAX_TOKEN_CHARS)}.${"A".repeat(22)}`,
  ])("%s is malformed", (given) => {
    expect(refusal(given)).toBe("malformed");
  });

  it.each(["", "null", "5", '"text"', "[]", "{", "{}", '{"v":2,"typ":"session","iat":0,"exp":9e15}'])(
    "genuine encryption of %s is malformed all the same",
    (text) => {
      expect(refusal(forge(text))).toBe("malformed");
    },
  );
});

describe("time and type", () => {
  const token = seal(keys, envelope());

  it.each([
    [NOW + 60, undefined],
    [NOW + 60 + CLOCK_SKEW_SECONDS, undefined],
    [NOW + 60 + CLOCK_SKEW_SECONDS + 1, "expired"],
    [NOW, undefined],
    [NOW - CLOCK_SKEW_SECONDS, undefined],
    [NOW - CLOCK_SKEW_SECONDS - 1, "malformed"],
  ])("at %i the verdict is %s", (now, verdict) => {
    expect(refusal(token, now)).toBe(verdict);
  });

  it("the tolerance is 30 seconds", () => {
    expect(CLOCK_SKEW_SECONDS).toBe(30);
  });

  it.each(types.flatMap((made) => types.map((wanted) => [made, wanted] as const)))(
    "a %s where a %s is wanted",
    (made, wanted) => {
      const verdict = refusal(seal(keys, envelope(made)), NOW, wanted);
      expect(verdict).toBe(made === wanted ? undefined : "wrong_type");
    },
  );

  it("the type is told before the time", () => {
    expect(refusal(token, NOW + 1000, "grant")).toBe("wrong_type");
  });

  it.each([{ iat: "0", exp: NOW + 60 }, { iat: NOW, exp: null }, { iat: NOW }, { exp: NOW + 60 }])(
    "times that are no numbers are malformed: %j",
    (times) => {
      expect(refusal(forge(JSON.stringify({ v: 1, typ: "session", ...times })))).toBe("malformed");
    },
  );
});

describe("keys", () => {
  const OLD = "previous-secret-of-at-least-32-bytes";

  it("a token of the previous secret opens during a rotation and not after it", () => {
    const token = seal(sealKeys(OLD), envelope());
    expect(refusal(token, NOW, "session", sealKeys(SECRET, OLD))).toBeUndefined();
    expect(refusal(token, NOW, "session", sealKeys(SECRET))).toBe("malformed");
  });

  it("new tokens are sealed with the current secret", () => {
    const token = seal(sealKeys(SECRET, OLD), envelope());
    expect(refusal(token, NOW, "session", sealKeys(SECRET))).toBeUndefined();
    expect(refusal(token, NOW, "session", sealKeys(OLD))).toBe("malformed");
  });

  it("in the steps of docs/operate.md each gateway opens what any other sealed, and what was sealed a step before", () => {
    const page = readFileSync(new URL("../../../../docs/operate.md", import.meta.url), "utf8");
    const secrets: Record<string, string> = { old: OLD, new: SECRET };
    const step = /^\d\. `SVC_EGRESS_GRANT_SECRET=(\w+)`(?: and `SVC_EGRESS_GRANT_SECRET_PREVIOUS=(\w+)`)?/gm;
    const documented = [...page.matchAll(step)].map(([, current = "", previous = ""]) =>
      sealKeys(secrets[current] ?? "", secrets[previous]),
    );
    expect(documented).toHaveLength(3);
    const states = [sealKeys(OLD), ...documented];
    for (const [at, after] of states.slice(1).entries()) {
      const both = [states[at] ?? after, after];
      for (const sealing of both)
        for (const opening of both)
          expect(refusal(seal(sealing, envelope()), NOW, "session", opening)).toBeUndefined();
    }
    expect(states.map((opening) => refusal(seal(keys, envelope()), NOW, "session", opening))).toEqual([
      "malformed",
      undefined,
      undefined,
      undefined,
    ]);
  });

  it.each([
    ["", "", "missing_secret"],
    ["x".repeat(31), "", "weak_secret"],
    [SECRET, "x".repeat(31), "weak_secret"],
    ["", OLD, "missing_secret"],
  ])("the secrets %j and %j are refused as %s", (secret, previous, reason) => {
    expect(() => sealKeys(secret, previous)).toThrow(new TokenRefused(reason as RefusalReason));
  });

  it("a refusal says nothing of the token or the secret", () => {
    const refused = new TokenRefused("malformed");
    expect(refused.message).toBe("token refused: malformed");
  });
});
