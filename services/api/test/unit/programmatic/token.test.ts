import { ContinuationTokens } from "@svc/api/programmatic/token";
import { newId } from "@svc/contracts";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const SECRET = newSecret();
const INTERNAL = newSecret();
const tokens = new ContinuationTokens(SECRET, INTERNAL);
const owner = { tenantId: "t", userId: "u" };
const held = { executionId: newId(), round: 7 };
const token = tokens.mint(held, owner);
const opening = (text: string, principal = owner, by = tokens) => {
  try {
    return by.open(text, principal);
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe("a continuation token", () => {
  it("names its execution and round, for its principal alone", () => {
    expect(opening(token)).toEqual(held);
    expect(opening(token, { tenantId: "t", userId: "v" })).toBe("forbidden");
    expect(opening(token, { tenantId: "s", userId: "u" })).toBe("forbidden");
    expect(opening(token, { tenantId: "", userId: "tu" })).toBe("forbidden");
    expect(token.length).toBeLessThanOrEqual(512);
  });

  it("is nothing to a service with another secret", () => {
    const others = [new ContinuationTokens("", INTERNAL), new ContinuationTokens(`${SECRET}x`, INTERNAL)];
    for (const other of others) expect(opening(token, owner, other)).toBe("invalid_continuation_token");
    const [derived] = others;
    expect(opening(derived?.mint(held, owner) ?? "", owner, derived)).toEqual(held);
  });

  it("that was altered in any character is refused", () => {
    for (let at = 0; at < token.length; at++) {
      for (const other of ["A", "_", ".", "é", ""]) {
        const text = token.slice(0, at) + other + token.slice(at + 1);
        if (text !== token) expect(opening(text), text).toBe("invalid_continuation_token");
      }
    }
  });

  it("made up of anything is refused", () => {
    const parts = token.split(".");
    const pieces = fc.oneof(fc.constantFrom(...parts), fc.string(), fc.nat().map(String));
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 7 }), (items) => {
        const text = items.join(".");
        return text === token || opening(text) === "invalid_continuation_token";
      }),
      { numRuns: 5000 },
    );
    expect(opening(`${token}${" ".repeat(600)}`)).toBe("invalid_continuation_token");
    expect(opening(`${token}.`)).toBe("invalid_continuation_token");
  });
});
