import { ledgerKey, openGrant, openSession } from "@svc/capabilities";
import { newId } from "@svc/contracts";
import { asRunner, type Gateway, keys, registration } from "@svc/test-kit/components/gateway";
import { describe, expect, it } from "vitest";
import { made, now, redis, useGateway } from "../support/own-gateway.ts";

useGateway();

describe("prefetching grants", () => {
  const {
    exec_id: _e,
    input_files: _i,
    read_sessions: _r,
    output_session_id: _o,
    ...claims
  } = registration([]).claims;
  const runsOf = (count: number) =>
    Array.from({ length: count }, () => ({ exec_id: newId(), output_session_id: newId() }));
  const ahead = (count: number) => ({ claims, runs: runsOf(count) });

  it("gives a grant without inputs for each run, recorded before the answer", async () => {
    const sent = ahead(16);
    const answer = await made.postJson("/internal/egress-grants/prefetch", sent);
    expect(answer.status).toBe(201);
    const { grants } = answer.json() as { grants: Awaited<ReturnType<Gateway["register"]>>[] };
    expect(grants).toHaveLength(16);
    expect(new Set(grants.map(({ payload }) => payload.session_id)).size).toBe(16);
    const { lifetime_seconds, ...shared } = claims;
    for (const [at, { grant_id, egressGrantToken, payload, executionManifestClaims }] of grants.entries()) {
      const run = sent.runs[at] as (typeof sent.runs)[number];
      const grant = openGrant(keys, egressGrantToken, now());
      expect(grant).toMatchObject({ ...shared, ...run, grant_id, input_files: [], read_sessions: [] });
      expect(grant.exp - grant.iat).toBe(lifetime_seconds);
      expect(openSession(keys, grant, payload.output_session_id, "write", now()).session_id).toBe(
        run.output_session_id,
      );
      expect(executionManifestClaims).toMatchObject({ exec_id: run.exec_id, input_files: [] });
      expect(JSON.parse((await redis.get(ledgerKey(grant_id))) ?? "")).toMatchObject({
        status: "active",
        ...run,
      });
      expect(await redis.ttl(ledgerKey(grant_id))).toBeGreaterThan(lifetime_seconds);
    }
  });

  it("each is good for its own session, and for no other's", async () => {
    const answer = await made.postJson("/internal/egress-grants/prefetch", ahead(2));
    const [a, b] = answer.json().grants as Awaited<ReturnType<Gateway["register"]>>[];
    if (a === undefined || b === undefined) throw new Error("two grants are missing");
    expect((await made.call(asRunner(a).write("x"))).status).toBe(200);
    const session = b.payload.output_session_id;
    expect((await made.call(asRunner(a).write("x", { session }))).json()).toMatchObject({
      error: "egress_grant_refused",
      reason: "scope_mismatch",
    });
  });

  it("lets none live longer than allowed", async () => {
    const sent = { ...ahead(1), claims: { ...claims, lifetime_seconds: 100_000 } };
    const answer = await made.postJson("/internal/egress-grants/prefetch", sent);
    const [grant] = answer.json().grants as { egressGrantToken: string }[];
    const { exp, iat } = openGrant(keys, grant?.egressGrantToken, now());
    expect(exp - iat).toBe(900);
  });

  it("ends the grants of earlier rounds", async () => {
    const { grant_id } = await made.register([]);
    await made.postJson("/internal/egress-grants/prefetch", {
      ...ahead(1),
      ends: [{ grant_id, reason: "failed" }],
    });
    await expect
      .poll(async () => JSON.parse((await redis.get(ledgerKey(grant_id))) ?? ""))
      .toMatchObject({ status: "revoked", revoke_reason: "failed" });
  });

  it.each([
    [{ runs: runsOf(1) }, "claims"],
    [{ claims }, "runs"],
    [ahead(0), "runs"],
    [ahead(17), "runs"],
    [{ claims, runs: [{ exec_id: "short", output_session_id: newId() }] }, "runs[0].exec_id"],
    [{ claims, runs: [{ exec_id: newId() }] }, "runs[0].output_session_id"],
    [{ ...ahead(1), ends: [{ grant_id: newId(), reason: "tired" }] }, "ends[0].reason"],
  ])("that breaks the schema is refused: %#", async (body, path) => {
    const answer = await made.postJson("/internal/egress-grants/prefetch", body);
    expect(answer.status).toBe(400);
    expect((answer.json().details as { path: string }[]).map((detail) => detail.path)).toContain(path);
  });

  it("with an input gives a grant that has none: nothing but what is enumerated can be read", async () => {
    const input = await made.upload("a", "1");
    const sent = {
      ...ahead(1),
      claims: { ...claims, input_files: [input], read_sessions: [input.session_id] },
    };
    const answer = await made.postJson("/internal/egress-grants/prefetch", sent);
    const [grant] = answer.json().grants as { egressGrantToken: string }[];
    expect(openGrant(keys, grant?.egressGrantToken, now())).toMatchObject({
      input_files: [],
      read_sessions: [],
    });
  });
});

describe("ending grants together", () => {
  it("ends each, with its reason; those that nobody knows or that are ended are fine", async () => {
    const [a, b, c] = [await made.register([]), await made.register([]), await made.register([])];
    const ends = [
      { grant_id: a.grant_id, reason: "completed" },
      { grant_id: newId(), reason: "completed" },
      { grant_id: b.grant_id, reason: "timeout" },
      { grant_id: a.grant_id, reason: "completed" },
    ];
    expect((await made.postJson("/internal/egress-grants/ends", { ends })).status).toBe(204);
    const record = async (grant_id: string) => JSON.parse((await redis.get(ledgerKey(grant_id))) ?? "");
    expect(await record(a.grant_id)).toMatchObject({ status: "revoked", revoke_reason: "completed" });
    expect(await record(b.grant_id)).toMatchObject({ status: "revoked", revoke_reason: "timeout" });
    expect(await record(c.grant_id)).toMatchObject({ status: "active" });
    expect((await made.postJson("/internal/egress-grants/ends", { ends: [] })).status).toBe(204);
  });

  it.each([
    [{}, "ends"],
    [{ ends: [{ reason: "completed" }] }, "ends[0].grant_id"],
    [{ ends: Array.from({ length: 65 }, () => ({ grant_id: newId(), reason: "completed" })) }, "ends"],
  ])("that breaks the schema is refused: %#", async (body, path) => {
    const answer = await made.postJson("/internal/egress-grants/ends", body);
    expect(answer.status).toBe(400);
    expect((answer.json().details as { path: string }[]).map((detail) => detail.path)).toContain(path);
  });
});
