/**
 * Ways to change a token of dot-separated base64url parts, each drawn from a seeded generator so that a failure can be
 * repeated. A mutant is never one of the tokens it was made from. Knows nothing of what the parts mean.
 */
import { randomBytes } from "node:crypto";

/** A small generator of numbers in [0, 1): enough for tests, the same for the same seed. */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const newSeed = () => randomBytes(4).readUInt32BE();

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const FOREIGN = [
  "",
  " ",
  "\n",
  "\0",
  ".",
  "..",
  "=",
  "==",
  "+",
  "/",
  "%2e",
  "é",
  "\ud800",
  "A",
  "ceg1",
  "null",
];

/** `others` are whole tokens of the same form, to take parts from. */
export function mutate(token: string, others: readonly string[], random: () => number): string {
  const below = (limit: number) => Math.floor(random() * limit);
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T;
  const parts = token.split(".");
  const withPart = (at: number, part: string) => parts.with(at, part).join(".");
  const at = below(token.length);
  const place = below(parts.length);
  const part = parts[place] as string;
  const ways: readonly (() => string)[] = [
    // One character is another one.
    () => token.slice(0, at) + pick([...ALPHABET]) + token.slice(at + 1),
    () =>
      token.slice(0, at) + String.fromCharCode(token.charCodeAt(at) ^ (1 << below(8))) + token.slice(at + 1),
    // One bit of the decoded bytes.
    () => {
      const bytes = Buffer.from(part, "base64url");
      if (bytes.length === 0) return `${token}.`;
      const byte = below(bytes.length);
      bytes[byte] = (bytes[byte] as number) ^ (1 << below(8));
      return withPart(place, bytes.toString("base64url"));
    },
    // Something is missing, twice there or in between.
    () => token.slice(0, at),
    () => token.slice(at + 1),
    () => token.slice(0, at) + token.slice(at + 1 + below(8)),
    () => token.slice(0, at) + pick(FOREIGN) + token.slice(at),
    () => pick(FOREIGN) + token,
    () => token + pick(FOREIGN),
    () => token + token.slice(at),
    () => withPart(place, pick(FOREIGN)),
    () => parts.toSpliced(place, 1).join("."),
    () => parts.toSpliced(place, 0, part).join("."),
    // Parts in other places, or of another token.
    () => parts.with(place, pick(parts)).join("."),
    () => parts.toReversed().join("."),
    () => withPart(place, pick(others).split(".")[place] ?? ""),
    () => withPart(place, pick(pick(others).split("."))),
    // The same bytes in another spelling.
    () => withPart(place, part.slice(0, -1) + pick([...ALPHABET])),
    () => withPart(place, part + "=".repeat(1 + below(3))),
    () => withPart(place, `${part}${pick([...ALPHABET])}`),
    () => withPart(place, part.replaceAll("-", "+").replaceAll("_", "/")),
    () => withPart(place, Buffer.from(part, "base64url").toString("hex")),
    () => withPart(place, Buffer.from(part).toString("base64url")),
    () => withPart(place, `${part.slice(0, at % (part.length + 1))} ${part.slice(at % (part.length + 1))}`),
    () => encodeURIComponent(token).replaceAll(".", "%2E"),
    () => (random() < 0.5 ? token.toUpperCase() : token.toLowerCase()),
  ];
  for (;;) {
    const mutant = pick(ways)();
    if (mutant !== token && !others.includes(mutant)) return mutant;
  }
}
