import { execFileSync } from "node:child_process";
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keyProblem, secretProblem, VARIABLES } from "../../src/index.ts";

const ROOT = join(import.meta.dirname, "../../../..");
const PUBLISHED = "is published and protects nothing: make one of your own";

describe("a shared secret", () => {
  it("made at random is fit, in each usual form", () => {
    const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
    const forms = ["hex", "base64", "base64url"] as const;
    fc.assert(
      fc.property(fc.integer({ min: 32, max: 64 }), fc.constantFrom(...forms), (length, form) => {
        expect(secretProblem(randomBytes(length).toString(form))).toBeUndefined();
      }),
    );
    fc.assert(
      fc.property(bytes(31), (short) => {
        expect(
          secretProblem(
            Buffer.from(short)
              .toString("latin1")
              .replaceAll(/[^ -~]/g, "x"),
          ),
        ).toBe("must have at least 32 bytes");
      }),
    );
  });

  it.each([
    ["one character", "a".repeat(64)],
    ["few characters", "abcabdacbacd".repeat(8)],
    ["a word again and again", "correcthorsebattery".repeat(3)],
    ["a word again and again, cut", "correcthorsebattery".repeat(3).slice(0, 50)],
    ["the alphabet", "abcdefghijklmnopqrstuvwxyz0123456789"],
    ["the alphabet backwards", "zyxwvutsrqponmlkjihgfedcba9876543210"],
    ["doubled steps", "aabbccddeeffgghhiijjkkllmmnnooppqq"],
    ["a placeholder", "please-CHANGE_ME-before-production-0x1f"],
    ["a word for secrets", "my-very-long-Password-for-the-service-17"],
  ])("of %s can be guessed", (_what, text) => {
    expect(secretProblem(text)).toMatch(/^can be guessed/);
  });

  it("is measured in bytes", () => {
    expect(secretProblem("éöüßñçæøåâêîôûàè")).toBeUndefined();
    expect(secretProblem("éöüßñçæøåâêîôûà")).toBe("must have at least 32 bytes");
  });
});

const keyForms: [string, (key: KeyObject) => string][] = [
  ["PEM", (key) => key.export({ format: "pem", type: typeOf(key) }) as string],
  [
    "PEM with written line ends",
    (key) => (key.export({ format: "pem", type: typeOf(key) }) as string).replaceAll("\n", "\\n"),
  ],
  [
    "base64 of PEM",
    (key) => Buffer.from(key.export({ format: "pem", type: typeOf(key) })).toString("base64"),
  ],
  ["base64 of DER", (key) => key.export({ format: "der", type: typeOf(key) }).toString("base64")],
  ["base64url of DER", (key) => key.export({ format: "der", type: typeOf(key) }).toString("base64url")],
  ["a JWK", (key) => JSON.stringify(key.export({ format: "jwk" }))],
  [
    "a key set",
    (key) =>
      JSON.stringify({
        keys: [
          { ...fresh().public.export({ format: "jwk" }), kid: "k".repeat(50) },
          key.export({ format: "jwk" }),
        ],
      }),
  ],
  [
    "a list",
    (key) =>
      [fresh().public, key]
        .map((one) => one.export({ format: "der", type: typeOf(one) }).toString("base64"))
        .join(", "),
  ],
];
const typeOf = (key: KeyObject) => (key.type === "private" ? "pkcs8" : "spki") as "spki";
const fresh = () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return { private: privateKey, public: publicKey };
};
/** RFC 8032, section 7.1, test 1. */
const RFC_SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const fromSeed = (seed: string) =>
  createPrivateKey({
    key: Buffer.from(`302e020100300506032b657004220420${seed}`, "hex"),
    format: "der",
    type: "pkcs8",
  });

describe("a key", () => {
  it.each(keyForms)("made at random is fit as %s", (_name, form) => {
    const { private: secret, public: open } = fresh();
    expect(keyProblem(form(open))).toBeUndefined();
    expect(keyProblem(form(secret))).toBeUndefined();
  });

  it.each(keyForms)("that is published is refused as %s, both parts", (_name, form) => {
    const secret = fromSeed(RFC_SEED);
    expect(keyProblem(form(secret))).toBe(PUBLISHED);
    expect(keyProblem(form(createPublicKey(secret)))).toBe(PUBLISHED);
  });

  it("from one byte again and again is refused", () => {
    expect(keyProblem(keyForms[0]?.[1](fromSeed("00".repeat(32))) ?? "")).toMatch(/no random key/);
  });
});

describe("this repository", () => {
  const files = execFileSync("git", ["ls-files", "-z"], { cwd: ROOT, encoding: "utf8" })
    .split("\0")
    .filter((name) => name !== "" && name !== "package-lock.json");
  const texts = files.map((name) => ({ name, text: readFileSync(join(ROOT, name), "latin1") }));

  /** Texts of 32 and more characters that something is given whose name speaks of a secret: quoted, or as in a file of variables. */
  const QUOTED = /(?:secret|token|key|password)\w*["']?\s*[:=(,]\s*(["'`])([^\s"'`$]{32,})\1/gi;
  const PLAIN = /^()[ \t]*(?:export )?\w*(?:SECRET|TOKEN|KEY|PASSWORD)\w*=([^\s"'`$]{32,})/gm;
  /** Ed25519 keys as PEM, DER or JWK, wherever they stand. */
  const KEYS = /MC4CAQAwBQYDK2Vw[\w+/]{40,}|MCowBQYDK2Vw[\w+/]{40,}|"?\b[xd]"?:\s*["'][\w-]{43}["']/g;

  it("shows no value that a component would take for a secret", () => {
    const usable = texts.flatMap(({ name, text }) =>
      [...text.matchAll(QUOTED), ...text.matchAll(PLAIN)]
        .map((match) => match[2] ?? "")
        .filter((value) => !Object.hasOwn(VARIABLES, value) && secretProblem(value) === undefined)
        .map((value) => `${name}: ${value}`),
    );
    expect(usable).toEqual([]);
  });

  it("shows no key that a component would take", () => {
    const usable = texts.flatMap(({ name, text }) =>
      [...text.matchAll(KEYS)]
        .map(([found]) => found)
        .filter((key) => keyProblem(key) === undefined)
        .map((key) => `${name}: ${key}`),
    );
    expect(usable).toEqual([]);
  });
});
