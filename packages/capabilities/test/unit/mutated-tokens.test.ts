/** No token that is not exactly one that was made opens anything: 90,000 changed ones, each refused with a public reason. */

import { generator, mutate, newSeed } from "@svc/test-kit/credentials/mutations";
import { refusalOf, TOKEN_KINDS, type TokenKind } from "@svc/test-kit/credentials/token-kinds";
import { describe, expect, it } from "vitest";

const MUTANTS = 18_000;
const ORIGINALS = 6;
/** What a changed text may be refused for. Its content is never reached, so it is never out of time or scope. */
const REASONS = new Set(["malformed", "bad_signature"]);

describe.each(TOKEN_KINDS.map((kind) => [kind.name, kind] as const))("a %s", (_name, kind: TokenKind) => {
  it("opens as it was made", () => {
    for (let at = 0; at < ORIGINALS; at++) expect(refusalOf(kind, kind.make())).toBeUndefined();
  });

  it(`is refused after each of ${MUTANTS} changes`, () => {
    const seed = newSeed();
    const random = generator(seed);
    const originals = Array.from({ length: ORIGINALS }, kind.make);
    const strange = new Map<string, string | undefined>();
    for (let at = 0; at < MUTANTS; at++) {
      const mutant = mutate(originals[at % ORIGINALS] as string, originals, random);
      const reason = refusalOf(kind, mutant);
      if (reason === undefined || !REASONS.has(reason)) strange.set(mutant, reason);
    }
    expect([...strange].slice(0, 3), `seed ${seed}`).toEqual([]);
  });

  it.each(kind.forgeries)("%s is refused", (_what, token, reason) => {
    expect(refusalOf(kind, token)).toBe(reason);
  });

  it("is refused where any other kind is wanted", () => {
    const sealed = (name: string) => name !== "manifest";
    for (const other of TOKEN_KINDS.filter(({ name }) => name !== kind.name)) {
      const bothSessions = kind.name.endsWith("session") && other.name.endsWith("session");
      const expected = bothSessions
        ? "scope_mismatch"
        : sealed(kind.name) && sealed(other.name)
          ? "wrong_type"
          : "malformed";
      expect([other.name, refusalOf(other, kind.make())]).toEqual([other.name, expected]);
    }
  });

  it.each([undefined, null, 5, {}, [], [""], Symbol("x"), "", ".", "...", "x".repeat(600_000)])(
    "is nothing else: case %#",
    (value) => {
      expect(refusalOf(kind, value)).toBe("malformed");
    },
  );
});
