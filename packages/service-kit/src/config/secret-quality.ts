/**
 * Checks whether a secret is usable: long enough, not made up by a person, not published. docs/secrets.md states the rule.
 * It refuses every secret value in the examples, tests and documents of this repository, and a test verifies that.
 * Problems never show anything of the value. Pure.
 */
import { createHash } from "node:crypto";

const MIN_BYTES = 32;
/** A random secret has more: fewer than one in a million texts of 32 random hexadecimal digits fall below this. */
const MIN_DISTINCT = 8;
const PLACEHOLDER = /password|secret|change.?me|example|placeholder/i;
const KEY_BYTES = 32;

/** SHA-256 of published texts, and of the last 32 bytes of published keys, that pass the other rules. */
const PUBLISHED: ReadonlySet<string> = new Set([
  // RFC 8032, section 7.1, tests 1 and 2; RFC 8037, appendix A: private and public parts.
  "644d50ab64864c20a12b3c4656d46b4a48f69ef7c47ecdc8415cd28316b22ef5",
  "21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9",
  "3d2d9682cdba529682a152f678e25c6c29847bf2588ca4e1b3023c1579f9958d",
  "39f713d0a644253f04529421b9f51b9b08979d08295959c4f3990ee617f5139f",
]);

const GUESSABLE = "can be guessed: take a random one, such as `openssl rand -hex 32` makes";
const IS_PUBLISHED = "is published and protects nothing: make one of your own";

/** What is wrong with a shared secret, or undefined. */
export function secretProblem(text: string): string | undefined {
  if (Buffer.byteLength(text) < MIN_BYTES) return `must have at least ${MIN_BYTES} bytes`;
  if (new Set(text).size < MIN_DISTINCT || isRepetition(text) || isSequence(text) || PLACEHOLDER.test(text)) {
    return GUESSABLE;
  }
  return PUBLISHED.has(digest(text)) ? IS_PUBLISHED : undefined;
}

/** The problem with keys in any form that a component accepts, or undefined. The users of the keys check their form. */
export function keyProblem(text: string): string | undefined {
  for (const key of keysIn(text)) {
    if (new Set(key).size < MIN_DISTINCT) return "is no random key: make one of your own";
    if (PUBLISHED.has(digest(key))) return IS_PUBLISHED;
  }
  return undefined;
}

/** Whether the text repeats one piece; the last repetition may be incomplete. */
function isRepetition(text: string): boolean {
  for (let length = 1; length <= text.length / 2; length++) {
    if (text.startsWith(text.slice(length))) return true;
  }
  return false;
}

/** Whether most characters are equal or adjacent to the previous one, as in `abcdefgh` and `98765432`. */
function isSequence(text: string): boolean {
  let steps = 0;
  for (let at = 1; at < text.length; at++) {
    if (Math.abs(text.charCodeAt(at) - text.charCodeAt(at - 1)) <= 1) steps++;
  }
  return steps > text.length / 2;
}

/** The last 32 bytes of each possible key in the text. In PKCS8, SPKI and JWK, an Ed25519 key is there. */
function keysIn(text: string): Buffer[] {
  const plain = text.trim().replaceAll("\\n", "\n");
  const runs = plain.startsWith("{")
    ? [...plain.matchAll(/"[dnx]"\s*:\s*"([^"]+)"/g)].map((match) => match[1] ?? "")
    : (plain
        .replaceAll(/-----(BEGIN|END) [A-Z ]+-----/g, ",")
        .replaceAll(/\s+/g, "")
        .match(/[A-Za-z0-9+/_-]{43,}/g) ?? []);
  return runs.flatMap((run) => {
    const bytes = Buffer.from(run, "base64");
    const inner = bytes.toString("latin1");
    return inner.startsWith("-----BEGIN") ? keysIn(inner) : [bytes.subarray(-KEY_BYTES)];
  });
}

const digest = (value: string | Buffer) => createHash("sha256").update(value).digest("hex");
