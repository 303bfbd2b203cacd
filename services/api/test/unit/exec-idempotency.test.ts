import { describe, expect, it } from "vitest";
import { idempotencyKey } from "../../src/exec/idempotency.ts";

describe("idempotencyKey", () => {
  it.each(["a", "x".repeat(255), "550e8400-e29b-41d4-a716-446655440000", " spaces inside ~", "!"])(
    "%j is a key",
    (key) => {
      expect(idempotencyKey({ "idempotency-key": key })).toBe(key);
    },
  );

  it("without the header there is no key", () => {
    expect(idempotencyKey({})).toBeUndefined();
  });

  it.each(["", "x".repeat(256), "é", "a\tb", "a\u007f", ["a", "b"]])("%j is refused", (key) => {
    expect(() => idempotencyKey({ "idempotency-key": key })).toThrow(
      expect.objectContaining({
        code: "invalid_request",
        status: 400,
        details: [expect.objectContaining({ path: "Idempotency-Key" })],
      }),
    );
  });
});
