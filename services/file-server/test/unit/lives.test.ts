import { type ObjectRecord, snapshotNamespaceOf } from "@svc/contracts";
import { expect, test } from "vitest";
import { differentLives, lifeOf, shortestLife } from "../../src/lives.ts";

const CONFIG = {
  SESSION_CACHE_TTL: 100,
  SVC_UPLOAD_TTL_SECONDS: 0,
  SVC_OUTPUT_TTL_SECONDS: 0,
  SVC_SESSION_STATE_TTL_SECONDS: 700,
};
const OWN = "acme:user:u1";

test.each<[string, Pick<ObjectRecord, "namespace" | "origin">, Partial<typeof CONFIG>, number]>([
  ["an upload", { namespace: OWN, origin: "upload" }, {}, 100],
  ["an upload", { namespace: OWN, origin: "upload" }, { SVC_UPLOAD_TTL_SECONDS: 50 }, 50],
  ["an output", { namespace: OWN, origin: "output" }, { SVC_UPLOAD_TTL_SECONDS: 50 }, 100],
  ["an output", { namespace: OWN, origin: "output" }, { SVC_OUTPUT_TTL_SECONDS: 900 }, 900],
  ["a file of unknown origin", { namespace: OWN }, { SVC_OUTPUT_TTL_SECONDS: 900 }, 100],
  ["a snapshot", { namespace: snapshotNamespaceOf(OWN) }, {}, 1400],
  ["a snapshot", { namespace: snapshotNamespaceOf(OWN) }, { SVC_SESSION_STATE_TTL_SECONDS: 40 }, 100],
])("%s %j with %j lives %i s", (_, record, change, life) => {
  const config = { ...CONFIG, ...change };
  expect(lifeOf(record, config)).toBe(life);
  expect(differentLives(config)).toContain(life);
});

test("different lives are listed once, from the longest to the shortest", () => {
  const config = { ...CONFIG, SVC_UPLOAD_TTL_SECONDS: 50, SVC_OUTPUT_TTL_SECONDS: 700 };
  expect(differentLives(config)).toEqual([1400, 700, 100, 50]);
  expect(shortestLife(config)).toBe(50);
});
