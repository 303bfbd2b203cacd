import { generateKeyPairSync, sign } from "node:crypto";
import { type ManifestScope, newId } from "@svc/contracts";
import { thrown } from "@svc/test-kit/thrown";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  checkBinding,
  checkScope,
  ManifestRefused,
  openManifest,
  parseSigningKey,
  parseVerifyingKeys,
  signManifest,
} from "../../src/index.ts";

const NOW = 1_800_000_000;
const newPair = () =>
  generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
const [mine, other] = [newPair(), newPair()];
const signingKey = parseSigningKey(mine.privateKey);
const keys = parseVerifyingKeys(mine.publicKey);
const bound = { body: '{"language":"python"}', grant: "ceg1.a.b.c" };
const files = [
  { id: "object-a", storage_session_id: "session-a", name: "a.csv" },
  { id: "object-b", storage_session_id: "session-b", name: "b.csv" },
];
const scope: ManifestScope = {
  exec_id: newId(),
  tenant_id: "hash-of-tenant",
  user_id: "hash-of-user",
  session_key: "hash-of-session-key",
  input_files: files.map(({ id, storage_session_id, name }) => ({
    id,
    session_id: storage_session_id,
    name,
  })),
  read_sessions: ["session-a", "session-b"],
  output_session_id: "write-handle",
  max_upload_bytes: 1000,
  max_output_files: 50,
  max_requests: 1000,
  max_tool_calls: 200,
};
const request = { files, outputSession: "write-handle" };
const manifest = (more: Partial<{ now: number; ttl: number; key: typeof signingKey }> = {}) =>
  signManifest(more.key ?? signingKey, scope, bound, { now: more.now ?? NOW, ttl: more.ttl ?? 300 });
const open = (token: unknown, now = NOW) => openManifest(keys, token, now);

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const decode = (part: string | undefined) =>
  JSON.parse(Buffer.from(part ?? "", "base64url").toString()) as Record<string, unknown>;
/** A manifest with changed header or claims, signed anew with the right key. */
function resigned(change: { header?: object; claims?: object }): string {
  const [head, body] = manifest().split(".");
  const signed = `${encode({ ...decode(head), ...change.header })}.${encode({ ...decode(body), ...change.claims })}`;
  return `${signed}.${sign(null, Buffer.from(signed), signingKey.key).toString("base64url")}`;
}

const reason = (check: () => unknown): string | undefined => thrown(ManifestRefused, check)?.reason;

describe("a manifest", () => {
  it("is a compact JWS whose header and claims follow the contract", () => {
    const [head, body] = manifest().split(".");
    expect(decode(head)).toEqual({ alg: "EdDSA", typ: "svc-manifest+jwt", kid: signingKey.kid });
    expect(decode(body)).toEqual({
      ...scope,
      v: 1,
      jti: expect.stringMatching(/^[A-Za-z0-9_-]{21}$/),
      iat: NOW,
      nbf: NOW,
      exp: NOW + 300,
      tool_call_socket: false,
      execute_body_sha256: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      egress_grant_sha256: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    });
  });

  it("opens, and fits the request that it was made for", () => {
    const { claims, lastSecond } = open(manifest());
    expect(claims).toMatchObject(scope);
    expect(lastSecond).toBe(NOW + 330);
    expect(reason(() => checkBinding(claims, bound))).toBeUndefined();
    expect(reason(() => checkScope(claims, request))).toBeUndefined();
  });

  it("has an id of its own each time", () => {
    expect(open(manifest()).claims.jti).not.toBe(open(manifest()).claims.jti);
  });

  it("with 256 inputs of the longest names still opens", () => {
    const name = `${"🎉".repeat(63)}/`.repeat(4).slice(0, -1);
    const input_files = Array.from({ length: 256 }, () => ({ id: newId(), session_id: newId(), name }));
    const token = signManifest(signingKey, { ...scope, input_files }, bound, { now: NOW, ttl: 300 });
    expect(open(token).claims.input_files).toEqual(input_files);
  });
});

describe("alteration", () => {
  it("of any one character is refused, whatever it becomes", () => {
    const token = manifest();
    for (let at = 0; at < token.length; at++) {
      for (const mask of [1, 2, 4, 8, 16, 32, 64]) {
        const changed = String.fromCharCode(token.charCodeAt(at) ^ mask);
        const forged = token.slice(0, at) + changed + token.slice(at + 1);
        expect(["malformed", "bad_signature"]).toContain(reason(() => open(forged)));
      }
    }
  });

  it("of 10,000 kinds is refused, and none crashes", () => {
    const token = manifest();
    const place = fc.nat({ max: token.length });
    const mutation = fc.oneof(
      fc.tuple(place, fc.string({ minLength: 1, maxLength: 8, unit: "binary" })).map(([at, text]) => {
        return token.slice(0, at) + text + token.slice(at);
      }),
      fc.tuple(place, fc.integer({ min: 1, max: 40 })).map(([at, length]) => {
        return token.slice(0, at) + token.slice(at + length);
      }),
      fc.tuple(place, place).map(([from, to]) => token.slice(from) + token.slice(0, to)),
      fc.array(fc.string({ unit: "binary" }), { maxLength: 5 }).map((parts) => parts.join(".")),
      fc.array(fc.base64String(), { maxLength: 4 }).map((parts) => parts.join(".")),
      fc.tuple(fc.jsonValue(), fc.jsonValue()).map(([head, body]) => {
        return `${encode(head)}.${encode(body)}.${token.split(".")[2]}`;
      }),
      fc.anything(),
    );
    fc.assert(
      fc.property(mutation, (forged) => {
        fc.pre(forged !== token);
        expect(["malformed", "bad_signature"]).toContain(reason(() => open(forged)));
      }),
      { numRuns: 10_000 },
    );
  });

  it("of claims under the right key is only ever malformed, refused or meaningful", () => {
    const names = Object.keys(decode(manifest().split(".")[1]));
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.jsonValue(), (name, value) => {
        const token = resigned({ claims: { [name]: value } });
        const found = reason(() => {
          const { claims } = open(token);
          checkBinding(claims, bound);
          checkScope(claims, request);
        });
        expect([
          undefined,
          "malformed",
          "expired",
          "not_yet_valid",
          "body_mismatch",
          "scope_mismatch",
          "unsupported_version",
        ]).toContain(found);
      }),
      { numRuns: 2000 },
    );
  });

  it("of the signature into an equivalent one is refused: there is one signature per text", () => {
    const order = 2n ** 252n + 27742317777372353535851937790883648493n;
    const [head, body, signature] = manifest().split(".");
    const bytes = Buffer.from(signature ?? "", "base64url");
    const scalar = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString("hex")}`) + order;
    const second = Buffer.from(scalar.toString(16).padStart(64, "0"), "hex").reverse();
    const forged = Buffer.concat([bytes.subarray(0, 32), second]).toString("base64url");
    expect(reason(() => open(`${head}.${body}.${forged}`))).toBe("bad_signature");
  });
});

describe("header", () => {
  it.each([
    [{ typ: "JWT" }, "malformed"],
    [{ typ: undefined }, "malformed"],
    [{ crit: ["b64"], b64: false }, "malformed"],
    [{ alg: "none" }, "bad_signature"],
    [{ alg: "HS256" }, "bad_signature"],
    [{ alg: "eddsa" }, "bad_signature"],
    [{ alg: undefined }, "bad_signature"],
  ])("%j is refused, also under the right key", (header, expected) => {
    expect(reason(() => open(resigned({ header })))).toBe(expected);
  });

  it("without a signature is no JWS", () => {
    const [head, body] = manifest().split(".");
    for (const token of [`${head}.${body}`, `${head}.${body}.`, `..`, "", undefined, 7, `${manifest()}.x`]) {
      expect(reason(() => open(token))).toBe("malformed");
    }
  });
});

describe("keys", () => {
  const foreign = manifest({ key: parseSigningKey(other.privateKey) });

  it("of others are refused, also under a stolen key id", () => {
    expect(reason(() => open(foreign))).toBe("bad_signature");
    const disguised = manifest({ key: { ...parseSigningKey(other.privateKey), kid: signingKey.kid } });
    expect(reason(() => open(disguised))).toBe("bad_signature");
  });

  it("may be several at once, for rotation", () => {
    const both = parseVerifyingKeys(`${other.publicKey},${mine.publicKey}`);
    for (const token of [manifest(), foreign]) {
      expect(reason(() => openManifest(both, token, NOW))).toBeUndefined();
    }
  });

  it("are tried when their id says nothing, and refused when it names another one", () => {
    expect(reason(() => open(resigned({ header: { kid: "unheard-of" } })))).toBeUndefined();
    const both = parseVerifyingKeys(`${other.publicKey},${mine.publicKey}`);
    const misnamed = resigned({ header: { kid: parseSigningKey(other.privateKey).kid } });
    expect(reason(() => openManifest(both, misnamed, NOW))).toBe("bad_signature");
  });
});

describe("time", () => {
  it("lets pass from 30 seconds before to 30 seconds after", () => {
    const token = manifest();
    const at = (now: number) => reason(() => open(token, now));
    expect([at(NOW - 31), at(NOW - 30), at(NOW + 330), at(NOW + 331)]).toEqual([
      "not_yet_valid",
      undefined,
      undefined,
      "expired",
    ]);
  });

  it("is bounded to 600 seconds, whatever the manifest says", () => {
    expect(open(manifest({ ttl: 100_000 })).claims.exp).toBe(NOW + 600);
    const longer = resigned({ claims: { exp: NOW + 100_000 } });
    expect(reason(() => open(longer, NOW + 630))).toBeUndefined();
    expect(reason(() => open(longer, NOW + 631))).toBe("expired");
  });

  it.each([
    [{ nbf: NOW + 31 }, "not_yet_valid"],
    [{ iat: NOW + 31, nbf: NOW }, "not_yet_valid"],
    [{ exp: NOW - 31 }, "expired"],
    [{ exp: "2100-01-01" }, "malformed"],
    [{ iat: undefined }, "malformed"],
    [{ nbf: 1e300 }, "malformed"],
  ])("%j is refused", (claims, expected) => {
    expect(reason(() => open(resigned({ claims })))).toBe(expected);
  });
});

describe("claims", () => {
  it.each([
    [{ v: 2 }, "unsupported_version"],
    [{ v: 0 }, "unsupported_version"],
    [{ v: "1" }, "unsupported_version"],
    [{ v: undefined }, "unsupported_version"],
    [{ jti: "" }, "malformed"],
    [{ jti: "x".repeat(129) }, "malformed"],
    [{ read_sessions: undefined }, "malformed"],
    [{ tool_call_socket: undefined }, "malformed"],
  ])("%j are refused", (claims, expected) => {
    expect(reason(() => open(resigned({ claims })))).toBe(expected);
  });

  it("that nobody knows are ignored", () => {
    const { claims } = open(resigned({ claims: { from_the_future: { x: 1 } } }));
    expect(claims).not.toHaveProperty("from_the_future");
    expect(claims).toMatchObject(scope);
  });
});

describe("another request", () => {
  const { claims } = open(manifest());
  const [first, second] = files as [(typeof files)[0], (typeof files)[0]];

  it.each([
    ["another body", { ...bound, body: '{"language":"bash"}' }, "body_mismatch"],
    ["no body", { ...bound, body: "{}" }, "body_mismatch"],
    ["another grant", { ...bound, grant: "ceg1.a.b.d" }, "scope_mismatch"],
    ["no grant", { ...bound, grant: "" }, "scope_mismatch"],
  ])("with %s is refused", (_what, presented, expected) => {
    expect(reason(() => checkBinding(claims, presented))).toBe(expected);
  });

  it.each([
    [{ execute_body_sha256: undefined }, "body_mismatch"],
    [{ egress_grant_sha256: undefined }, "scope_mismatch"],
  ])("gets no grace for a missing hash: %j", (change, expected) => {
    const opened = open(resigned({ claims: change }));
    expect(reason(() => checkBinding(opened.claims, bound))).toBe(expected);
    expect(reason(() => checkBinding(opened.claims, { body: "", grant: "" }))).toBeDefined();
  });

  it.each([
    ["one file less", { files: [first] }],
    ["one file more", { files: [...files, { ...first, id: "object-c" }] }],
    ["one file twice", { files: [first, first] }],
    ["one file under another name", { files: [{ ...first, name: "b.csv" }, second] }],
    ["one file of another session", { files: [{ ...first, storage_session_id: "session-b" }, second] }],
    ["another output session", { outputSession: "session-a" }],
    ["no output session", { outputSession: undefined }],
  ])("with %s is out of scope", (_what, change) => {
    expect(reason(() => checkScope(claims, { ...request, ...change }))).toBe("scope_mismatch");
  });

  it.each([[["session-a"]], [["session-a", "session-b", "session-c"]], [["session-a", "session-a"]], [[]]])(
    "whose sessions are not those that may be read (%j) is out of scope",
    (read_sessions) => {
      expect(reason(() => checkScope({ ...claims, read_sessions }, request))).toBe("scope_mismatch");
    },
  );

  it("that lists the same files in another order is the same request", () => {
    expect(reason(() => checkScope(claims, { ...request, files: files.toReversed() }))).toBeUndefined();
  });
});
