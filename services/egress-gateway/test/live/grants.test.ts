import { issueGrant, ledgerKey, openGrant, openObject, openSession, sealGrant } from "@svc/capabilities";
import { GRANT_HEADER, newId } from "@svc/contracts";
import {
  asRunner,
  type Gateway,
  INTERNAL_TOKEN,
  type Input,
  keys,
  registration,
} from "@svc/test-kit/components/gateway";
import { describe, expect, it } from "vitest";
import { made, now, redis, useGateway } from "../support/own-gateway.ts";

const NAMES_256 = `${"🎉".repeat(63)}/`.repeat(4).slice(0, -1);
useGateway();

describe("registering a grant", () => {
  it("gives a grant and a payload in which every id is a handle that opens to the real one", async () => {
    const [a, b] = [await made.upload("a.csv", "1"), await made.upload("b.csv", "2")];
    const sent = registration([a, b]);
    const answer = await made.postJson("/internal/egress-grants", sent);
    expect(answer.status).toBe(201);
    const { grant_id, egressGrantToken, payload, executionManifestClaims } =
      answer.json() as never as Awaited<ReturnType<Gateway["register"]>>;
    const grant = openGrant(keys, egressGrantToken, now());
    const { lifetime_seconds, ...claims } = sent.claims;
    expect(grant).toMatchObject({ ...claims, grant_id });
    expect(grant.exp - grant.iat).toBe(lifetime_seconds);
    expect(payload.session_id).not.toBe(sent.payload.session_id);
    expect(openSession(keys, grant, payload.output_session_id, "write", now()).session_id).toBe(
      claims.output_session_id,
    );
    for (const [at, input] of [a, b].entries()) {
      const file = payload.files[at];
      const session = openSession(keys, grant, file?.storage_session_id, "read", now());
      expect(openObject(keys, grant, session, file?.id, now())).toMatchObject({
        object_id: input.id,
        name: input.name,
      });
      expect(file?.name).toBe(input.name);
    }
    const shown = JSON.stringify({ payload, egressGrantToken, executionManifestClaims });
    const names = [claims.tenant_id, claims.user_id, claims.session_key].map((name) => `"${name}"`);
    const ids = [a.id, b.id, a.session_id, claims.output_session_id, sent.payload.session_id];
    for (const hidden of [...ids, ...names]) expect(shown).not.toContain(hidden);
  });

  it("gives for each object the key of its copies: always the same, and no other object's", async () => {
    const [a, b] = [await made.upload("a.csv", "1"), await made.upload("b.csv", "1")];
    const keysOf = async (...inputs: Input[]) =>
      (await made.register(inputs)).payload.files.map(({ copy_key }) => copy_key);
    const [keyOfA, keyOfB] = await keysOf(a, b);
    expect(keyOfA).toMatch(/^[\w-]{43}$/);
    expect(keyOfB).not.toBe(keyOfA);
    expect(await keysOf({ ...b, name: "c.csv" }, a)).toEqual([keyOfB, keyOfA]);
    expect(await keysOf({ ...a, session_id: newId() })).not.toEqual([keyOfA]);
  });

  it("gives claims for the manifest that name the handles of the payload and hash whose run it is", async () => {
    const a = await made.upload("a.csv", "1");
    const inputs = [a, await made.upload("b.csv", "2", a.session_id), await made.upload("c.csv", "3")];
    const { payload, executionManifestClaims: stated } = await made.register(inputs);
    const named = payload.files.map(({ id, storage_session_id, name }) => ({
      id,
      session_id: storage_session_id,
      name,
    }));
    expect(stated.input_files).toEqual(named);
    expect(stated.read_sessions).toEqual([...new Set(named.map(({ session_id }) => session_id))]);
    expect(stated.read_sessions).toHaveLength(2);
    expect(stated.output_session_id).toBe(payload.output_session_id);
    expect(stated).toMatchObject({ max_upload_bytes: 500_000_000, max_output_files: 50, max_requests: 1000 });
    const hashes = [stated.tenant_id, stated.user_id, stated.session_key];
    for (const hash of hashes) expect(hash).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(new Set(hashes).size).toBe(3);
    const { executionManifestClaims: again } = await made.register([]);
    expect(again).toMatchObject({ tenant_id: stated.tenant_id, user_id: stated.user_id });
    const { executionManifestClaims: foreign } = await made.register([], {
      tenant_id: "user-1",
      user_id: "tenant",
    });
    expect(hashes).not.toContain(foreign.tenant_id);
    expect(hashes).not.toContain(foreign.user_id);
  });

  it("lets no grant live longer than allowed", async () => {
    const { egressGrantToken } = await made.register([], { lifetime_seconds: 100_000 });
    const grant = openGrant(keys, egressGrantToken, now());
    expect(grant.exp - grant.iat).toBe(900);
  });

  it.each([[undefined], [""], ["wrong"], [`${INTERNAL_TOKEN}x`]])(
    "with the token %j is refused",
    async (token) => {
      for (const path of ["", "/prefetch", "/ends", `/${newId()}/revoke`]) {
        const answer = await made.call({
          method: "POST",
          path: `/internal/egress-grants${path}`,
          headers: {
            "content-type": "application/json",
            ...(token === undefined ? {} : { "x-svc-internal-token": token }),
          },
          body: JSON.stringify(registration([])),
        });
        expect(answer.status).toBe(401);
        expect(answer.json()).toMatchObject({ error: "unauthorized" });
      }
    },
  );

  it.each([
    [{}, "payload"],
    [{ payload: registration([]).payload }, "claims"],
    [registration([], { exec_id: "short" }), "claims.exec_id"],
    [registration([], { lifetime_seconds: 0 }), "claims.lifetime_seconds"],
    [registration([], { max_requests: -1 }), "claims.max_requests"],
    [registration([], { read_sessions: ["x"] }), "claims.read_sessions[0]"],
    [registration([{ id: "x", session_id: newId(), name: "a" }]), "claims.input_files[0].id"],
    [{ ...registration([]), payload: { ...registration([]).payload } }, "payload.output_session_id"],
  ])("that breaks the schema or itself is refused: %#", async (body, path) => {
    const answer = await made.postJson("/internal/egress-grants", body);
    expect(answer.status).toBe(400);
    const paths = (answer.json().details as { path: string }[]).map((detail) => detail.path);
    expect(paths).toContain(path);
  });

  it("whose payload names what the claims do not enumerate is refused", async () => {
    const input = { id: newId(), session_id: newId(), name: "a" };
    const sent = registration([input]);
    sent.payload.files.push({ id: newId(), storage_session_id: input.session_id, name: "b" });
    expect((await made.postJson("/internal/egress-grants", sent)).json()).toMatchObject({
      error: "invalid_request",
      details: [{ path: "payload.files[1]" }],
    });
    const unread = registration([input], { read_sessions: [] });
    expect((await made.postJson("/internal/egress-grants", unread)).status).toBe(400);
  });

  it("with 256 inputs of the longest names gives a grant that can be used", async () => {
    const session = newId();
    const inputs = await Promise.all(Array.from({ length: 8 }, () => made.upload("f", "x", session)));
    const others = Array.from({ length: 248 }, () => ({ id: newId(), session_id: newId(), name: NAMES_256 }));
    const grant = await made.register([...inputs.map((input) => ({ ...input, name: NAMES_256 })), ...others]);
    expect(grant.egressGrantToken.length).toBeGreaterThan(300_000);
    expect((await made.call(asRunner(grant).read())).bytes.toString()).toBe("x");
    expect((await made.call(asRunner(grant).write("y"))).status).toBe(200);
  });
});

describe("the grant of a call", () => {
  const problem = async (token: string | undefined) => {
    const input = await made.upload("a", "1");
    const { path } = asRunner(await made.register([input])).read();
    const answer = await made.call({
      method: "GET",
      path,
      headers: token === undefined ? {} : { [GRANT_HEADER]: token },
    });
    const { error, reason, ledger_reason } = answer.json();
    return { status: answer.status, error, reason, ledger_reason };
  };
  const GRANT = "egress_grant_refused";
  const LEDGER = "egress_ledger_refused";
  const grantOf = (at = now(), life = 300) =>
    issueGrant({ ...registration([]).claims, lifetime_seconds: life }, at, 900);

  it.each([undefined, "", "x", "ceg1.a.b.c"])("%j is malformed", async (token) => {
    expect(await problem(token)).toMatchObject({ status: 400, error: GRANT, reason: "malformed" });
  });

  it("that is a handle is of the wrong type", async () => {
    const { payload } = await made.register([]);
    expect(await problem(payload.output_session_id)).toMatchObject({
      status: 403,
      error: GRANT,
      reason: "wrong_type",
    });
  });

  it("that has lapsed is expired, with a tolerance of 30 seconds", async () => {
    const old = sealGrant(keys, grantOf(now() - 400, 300));
    expect(await problem(old)).toMatchObject({ status: 401, error: GRANT, reason: "expired" });
    const late = sealGrant(keys, grantOf(now() - 310, 300));
    expect(await problem(late)).toMatchObject({ error: LEDGER, ledger_reason: "missing" });
  });

  it("that comes from the future is malformed", async () => {
    expect(await problem(sealGrant(keys, grantOf(now() + 60)))).toMatchObject({
      status: 400,
      reason: "malformed",
    });
  });

  it("that nobody registered is refused by the ledger", async () => {
    expect(await problem(sealGrant(keys, grantOf()))).toEqual({
      status: 403,
      error: LEDGER,
      reason: undefined,
      ledger_reason: "missing",
    });
  });

  it.each([
    [{ exec_id: newId() }, 403, "mismatch"],
    [{ grant_id: newId() }, 403, "mismatch"],
    [{ status: "revoked" }, 403, "revoked"],
    [{ exp: 1000 }, 401, "expired"],
  ])("whose record says %j is refused", async (change, status, reason) => {
    const { grant_id, egressGrantToken } = await made.register([]);
    const record = JSON.parse((await redis.get(ledgerKey(grant_id))) ?? "") as object;
    await redis.set(ledgerKey(grant_id), JSON.stringify({ ...record, ...change }), "KEEPTTL");
    expect(await problem(egressGrantToken)).toMatchObject({ status, error: LEDGER, ledger_reason: reason });
  });

  it("of another execution does not open this one's handles", async () => {
    const other = await made.register([await made.upload("b", "2")]);
    expect(await problem(other.egressGrantToken)).toMatchObject({
      status: 403,
      error: GRANT,
      reason: "scope_mismatch",
    });
  });
});

describe("revoking", () => {
  it("ends a grant at once, for reading, listing and writing", async () => {
    const grant = await made.register([await made.upload("a", "1")]);
    const runner = asRunner(grant);
    expect((await made.call(runner.read())).status).toBe(200);
    const revoked = await made.postJson(`/internal/egress-grants/${grant.grant_id}/revoke`, {
      reason: "cancelled",
    });
    expect({ status: revoked.status, body: revoked.bytes.length }).toEqual({ status: 204, body: 0 });
    for (const call of [runner.read(), runner.list(), runner.write("x")]) {
      const answer = await made.call(call);
      expect(answer.status).toBe(403);
      expect(answer.json()).toMatchObject({ error: "egress_ledger_refused", ledger_reason: "revoked" });
      expect(answer.json()).not.toHaveProperty("reason");
    }
  });

  it("comes with the registration of another grant, also of one that is refused, and for many at once", async () => {
    const ends = async (reason: string, change: object = {}) => {
      const { grant_id } = await made.register();
      const other = await made.register();
      const both = [grant_id, other.grant_id].map((id) => ({ grant_id: id, reason }));
      const body = { ...registration([]), ends: both, ...change };
      const { status } = await made.postJson("/internal/egress-grants", body);
      return { status, ids: both.map((end) => end.grant_id) };
    };
    const records = async (ids: readonly string[]) =>
      (await redis.mget(ids.map(ledgerKey))).map((text) => {
        const { status, revoke_reason } = JSON.parse(text ?? "");
        return [status, revoke_reason];
      });
    const completed = await ends("completed");
    expect(completed.status).toBe(201);
    await expect
      .poll(() => records(completed.ids))
      .toEqual([
        ["revoked", "completed"],
        ["revoked", "completed"],
      ]);
    const payload = { ...registration([]).payload, output_session_id: newId() };
    const failed = await ends("failed", { payload });
    expect(failed.status).toBe(400);
    await expect
      .poll(() => records(failed.ids))
      .toEqual([
        ["revoked", "failed"],
        ["revoked", "failed"],
      ]);
    const unknown = await ends("because");
    expect(unknown.status).toBe(400);
    expect(await records(unknown.ids)).toEqual([
      ["active", undefined],
      ["active", undefined],
    ]);
  });

  it("an unknown or revoked grant is fine, a reason nobody knows is not", async () => {
    const { grant_id } = await made.register([]);
    const revoke = (id: string, body: unknown) => made.postJson(`/internal/egress-grants/${id}/revoke`, body);
    expect((await revoke(newId(), {})).status).toBe(204);
    expect((await revoke("x:y*", {})).status).toBe(204);
    for (const reason of ["completed", "failed", "timeout", null]) {
      expect((await revoke(grant_id, { reason })).status).toBe(204);
    }
    expect((await revoke(grant_id, { reason: "because" })).json()).toMatchObject({
      error: "invalid_request",
    });
  });

  it("needs no body", async () => {
    const { grant_id } = await made.register([]);
    const headers = { "x-svc-internal-token": INTERNAL_TOKEN };
    const path = `/internal/egress-grants/${grant_id}/revoke`;
    expect((await made.call({ method: "POST", path, headers })).status).toBe(204);
  });
});

describe("without its store", () => {
  it("the gateway lets nothing through, says so, and is back when the store is", async () => {
    const grant = await made.register([await made.upload("a", "1")]);
    await made.redis.kill();
    const [read, health] = await Promise.all([
      made.call(asRunner(grant).read()),
      made.call({ method: "GET", path: "/health" }),
    ]);
    expect({ status: read.status, body: read.json() }).toMatchObject({
      status: 503,
      body: { error: "store_unavailable" },
    });
    expect(health.status).toBe(503);
    expect((await made.call({ method: "GET", path: "/live" })).status).toBe(200);
    await made.redis.start();
    await expect.poll(async () => (await made.call({ method: "GET", path: "/ready" })).status).toBe(200);
    expect((await made.call(asRunner(grant).read())).json()).toMatchObject({ ledger_reason: "missing" });
  });
});
