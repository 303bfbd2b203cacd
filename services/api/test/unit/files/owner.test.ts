import { ownerOf } from "@svc/api/files/owner";
import { namespaceOf, type ServiceError } from "@svc/contracts";
import { describe, expect, test } from "vitest";

const principal = { tenantId: "acme", userId: "u:1" };

describe("kind, id and version", () => {
  test.each([
    [{}, "acme:user:u%3A1"],
    [{ kind: "user", id: "any thing" }, "acme:user:u%3A1"],
    [{ kind: "user", version: "" }, "acme:user:u%3A1"],
    [{ kind: "agent", id: "a.b:c_d-1" }, "acme:agent:a.b%3Ac_d-1"],
    [{ kind: "skill", id: "s", version: "3" }, "acme:skill:s:v:3"],
    [{ kind: "skill", id: "s", version: "3.0" }, "acme:skill:s:v:3"],
    [{ kind: "skill", id: "s", version: "1.5" }, "acme:skill:s:v:1.5"],
  ])("%j means %s", (fields, namespace) => {
    expect(namespaceOf(principal, ownerOf(fields))).toBe(namespace);
  });

  test.each([
    [{ kind: "User" }, ["kind"]],
    [{ kind: "" }, ["kind"]],
    [{ kind: "agent" }, ["id"]],
    [{ kind: "agent", id: "" }, ["id"]],
    [{ kind: "agent", id: "a/b" }, ["id"]],
    [{ kind: "agent", id: "a".repeat(129) }, ["id"]],
    [{ kind: "agent", id: "a", version: "1" }, ["version"]],
    [{ kind: "user", version: "1" }, ["version"]],
    [{ kind: "skill", id: "s" }, ["version"]],
    [{ kind: "skill", id: "s", version: "" }, ["version"]],
    [{ kind: "skill", id: "s", version: "one" }, ["version"]],
    [{ kind: "skill", id: "s", version: "1e3" }, ["version"]],
    [{ kind: "skill", id: "s", version: "NaN" }, ["version"]],
    [{ kind: "skill", id: "s", version: " 1" }, ["version"]],
    [{ kind: "skill", id: "s", version: "9".repeat(400) }, ["version"]],
    [{ kind: "skill" }, ["id", "version"]],
  ])("%j is refused and names %j", (fields, paths) => {
    let refused: ServiceError | undefined;
    try {
      ownerOf(fields);
    } catch (error) {
      refused = error as ServiceError;
    }
    expect(refused?.code).toBe("invalid_request");
    expect(refused?.details?.map(({ path }) => path)).toEqual(paths);
  });
});
