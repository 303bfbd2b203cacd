import { createHash, randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ApiKeyRecord,
  apiKeyDigest,
  apiKeyState,
  formatApiKeys,
  isApiKey,
  parseApiKeys,
} from "../../src/api-keys.ts";

const newKey = () => `svc_${randomBytes(32).toString("base64url")}`;
const digest = (text: string) => createHash("sha256").update(text).digest("hex");

function record(change: Partial<ApiKeyRecord> = {}): ApiKeyRecord {
  return {
    id: randomBytes(6).toString("hex"),
    name: "laptop",
    sha256: digest(newKey()),
    tenant: "t1",
    user: "alice",
    created_at: "2026-11-24T10:00:00.000Z",
    ...change,
  };
}

describe("an API key", () => {
  it("has one form", () => {
    const key = newKey();
    expect(isApiKey(key)).toBe(true);
    expect(apiKeyDigest(key)).toBe(digest(key));
    for (const other of [
      "",
      "svc_",
      key.slice(0, -1),
      `${key}A`,
      ` ${key}`,
      `${key}\n`,
      key.toUpperCase(),
      key.replace("svc_", "svc-"),
      `${key.slice(0, -1)}=`,
      `${key.slice(0, -1)}+`,
      `${key.slice(0, -1)}.`,
      `${key.slice(0, -1)}é`,
    ]) {
      expect([other, isApiKey(other)]).toEqual([other, false]);
    }
  });

  it("is active until it expires or is revoked, whichever comes first", () => {
    const now = Date.parse("2026-11-25T00:00:00Z");
    const state = (change: Partial<ApiKeyRecord>) => apiKeyState(record(change), now);
    expect(state({})).toBe("active");
    expect(state({ expires_at: "2026-11-25T00:00:01Z" })).toBe("active");
    expect(state({ expires_at: "2026-11-25T00:00:00Z" })).toBe("expired");
    expect(state({ expires_at: "2026-11-25T02:00:00+01:00" })).toBe("active");
    expect(state({ expires_at: "2020-01-01T00:00:00Z", revoked_at: "2026-01-01T00:00:00Z" })).toBe("revoked");
    // A time of revocation that is to come ends the key at once.
    expect(state({ revoked_at: "2030-01-01T00:00:00Z" })).toBe("revoked");
  });
});

describe("the file of API keys", () => {
  it("gives the records that were written", () => {
    const records = [
      record(),
      record({ plan: "pro", expires_at: "2027-01-01T00:00:00Z", revoked_at: "2026-12-01T00:00:00Z" }),
      record({ name: "ü 名 'quoted'", tenant: "a:b/c%", user: "line\nbreak" }),
    ];
    expect(parseApiKeys(formatApiKeys(records))).toEqual({ records, problems: [] });
    expect(parseApiKeys("")).toEqual({ records: [], problems: [] });
    expect(parseApiKeys(`\n  \n${formatApiKeys(records.slice(0, 1))}\r\n`).records).toHaveLength(1);
  });

  const line = (change: Record<string, unknown>) => JSON.stringify({ ...record(), ...change });
  it.each([
    ["no JSON", "{", "line 1 is not JSON"],
    ["a comment", "# key", "line 1 is not JSON"],
    ["another kind of JSON", "[]", "line 1 is no API key"],
    ["null", "null", "line 1 is no API key"],
    ["a key in the place of its digest", line({ sha256: newKey() }), "sha256"],
    ["a digest in capitals", line({ sha256: "A".repeat(64) }), "sha256"],
    ["a digest that is too short", line({ sha256: "a".repeat(63) }), "sha256"],
    ["no tenant", line({ tenant: undefined }), "tenant"],
    ["an empty tenant", line({ tenant: "" }), "tenant"],
    ["half of a surrogate pair", line({ user: "\ud800" }), "user"],
    ["a long user", line({ user: "u".repeat(257) }), "user"],
    ["a number for a user", line({ user: 1 }), "user"],
    ["an id with a slash", line({ id: "../a" }), "id"],
    ["a name with a control character", line({ name: "a\u001b[31m" }), "name"],
    ["a day for a time", line({ expires_at: "2027-01-01" }), "expires_at"],
    ["null for a time", line({ revoked_at: null }), "revoked_at"],
    ["an empty plan", line({ plan: "" }), "plan"],
    ["a misspelt field", line({ expires: "2027-01-01T00:00:00Z" }), "expires"],
    ["the field of a prototype", `${line({}).slice(0, -1)},"__proto__":{"plan":"x"}}`, "__proto__"],
    ["a very long line", line({ name: "n".repeat(9000) }), "more than 8192 characters"],
    ["deep JSON", "[".repeat(8000), "line 1 is not JSON"],
  ])("with %s is refused, and the problem shows nothing of it", (_what, text, problem) => {
    const { problems } = parseApiKeys(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(problem);
    expect(problems[0]?.length).toBeLessThan(300);
    const secretPart = /"sha256":"([^"]+)"/.exec(text)?.[1];
    if (secretPart !== undefined) expect(problems[0]).not.toContain(secretPart.slice(0, 16));
  });

  it("names each wrong line, and at most ten", () => {
    const text = `${line({})}\n{\n${line({})}\n{\n`;
    expect(parseApiKeys(text).problems).toEqual(["line 2 is not JSON", "line 4 is not JSON"]);
    expect(parseApiKeys("{\n".repeat(1000)).problems).toHaveLength(10);
  });

  it("refuses an id or a digest that is there twice", () => {
    const one = record();
    for (const other of [record({ id: one.id }), record({ sha256: one.sha256 })]) {
      const { problems } = parseApiKeys(formatApiKeys([one, other]));
      expect(problems).toEqual(["line 2 has the id or the sha256 of an earlier line"]);
    }
  });

  it("never throws, whatever is in it", () => {
    const anyLine = fc.oneof(fc.string(), fc.json(), fc.constant(line({})), fc.string({ unit: "binary" }));
    fc.assert(
      fc.property(fc.array(anyLine, { maxLength: 20 }), (lines) => {
        const { records, problems } = parseApiKeys(lines.join("\n"));
        expect(records.length + problems.length).toBeLessThanOrEqual(1000);
      }),
    );
  });
});
