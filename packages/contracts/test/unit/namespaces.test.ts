import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FileOwner, namespaceOf, type Principal, resourceIdOf } from "../../src/index.ts";

const id = fc.oneof(
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
  fc.constantFrom(":", "a:user:b", "%3A", "%", "x:v:1", "a/b", "..", "é"),
);
const principal: fc.Arbitrary<Principal> = fc.record({ tenantId: id, userId: id });
const owner: fc.Arbitrary<FileOwner> = fc.oneof(
  fc.constant<FileOwner>({ kind: "user" }),
  id.map((resourceId): FileOwner => ({ kind: "agent", resourceId })),
  fc
    .tuple(id, fc.double({ noNaN: true, noDefaultInfinity: true }))
    .map(([resourceId, version]): FileOwner => ({ kind: "skill", resourceId, version: version + 0 })),
);

/** What a namespace must tell apart: the user's id counts for the user's own files only. */
const identity = (who: Principal, whose: FileOwner) =>
  JSON.stringify([who.tenantId, whose, whose.kind === "user" ? who.userId : ""]);

describe("namespaceOf", () => {
  it("is the same for two owners exactly when they are the same", () => {
    fc.assert(
      fc.property(principal, owner, principal, owner, (who1, whose1, who2, whose2) => {
        const same = identity(who1, whose1) === identity(who2, whose2);
        expect(namespaceOf(who1, whose1) === namespaceOf(who2, whose2)).toBe(same);
      }),
      { numRuns: 1000 },
    );
  });

  it("never lets an id forge a part", () => {
    fc.assert(
      fc.property(principal, owner, (who, whose) => {
        const parts = namespaceOf(who, whose).split(":");
        expect(parts).toHaveLength(whose.kind === "skill" ? 5 : 3);
        expect(decodeURIComponent(parts[0] ?? "")).toBe(who.tenantId);
        expect(parts[1]).toBe(whose.kind);
        expect(resourceIdOf(namespaceOf(who, whose))).toBe(
          whose.kind === "user" ? who.userId : whose.resourceId,
        );
      }),
    );
  });

  it("writes the documented forms", () => {
    const who = { tenantId: "t1", userId: "u:1" };
    expect(namespaceOf(who, { kind: "user" })).toBe("t1:user:u%3A1");
    expect(namespaceOf(who, { kind: "agent", resourceId: "agent_1" })).toBe("t1:agent:agent_1");
    expect(namespaceOf(who, { kind: "skill", resourceId: "s.1", version: 2 })).toBe("t1:skill:s.1:v:2");
  });

  it("keeps a user, an agent and a skill of one name apart", () => {
    const who = { tenantId: "t", userId: "x" };
    const all = [
      namespaceOf(who, { kind: "user" }),
      namespaceOf(who, { kind: "agent", resourceId: "x" }),
      namespaceOf(who, { kind: "skill", resourceId: "x", version: 1 }),
      namespaceOf(who, { kind: "skill", resourceId: "x", version: 11 }),
    ];
    expect(new Set(all).size).toBe(4);
  });
});
