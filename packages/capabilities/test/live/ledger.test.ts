import { type GrantClaims, newId } from "@svc/contracts";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PrivateRedis, startRedis } from "../../../service-kit/test/support/redis.ts";
import { type Grant, issueGrant, Ledger, ledgerKey } from "../../src/index.ts";

const NOW = Math.floor(Date.now() / 1000);
const GRACE = 300;
let server: PrivateRedis;
let redis: Redis;
let ledger: Ledger;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.socket);
  ledger = new Ledger(redis, GRACE);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const nasty = '","status":"active","rev":7,"x":"%1%d\\\u2028é🎉';
const claims = (names: string[] = []): GrantClaims => ({
  exec_id: newId(),
  tenant_id: "tenant",
  user_id: "user",
  session_key: "tenant:user:user",
  input_files: names.map((name) => ({ id: newId(), session_id: newId(), name })),
  read_sessions: [],
  output_session_id: newId(),
  max_upload_bytes: 1,
  max_output_files: 1,
  max_requests: 1,
  max_tool_calls: 1,
  lifetime_seconds: 60,
});

async function registered(names?: string[]): Promise<Grant> {
  const grant = issueGrant(claims(names), NOW, 900);
  await ledger.register(grant, NOW);
  return grant;
}

describe("the ledger", () => {
  it("keeps the record of a grant for its life and the grace after it", async () => {
    const grant = await registered(["a"]);
    expect(await ledger.find(grant.grant_id)).toMatchObject({
      status: "active",
      rev: 0,
      grant_id: grant.grant_id,
      input_files: grant.input_files,
      output_file_ids: [],
    });
    const ttl = await redis.ttl(ledgerKey(grant.grant_id));
    expect(ttl).toBeGreaterThan(60 + GRACE - 10);
    expect(ttl).toBeLessThanOrEqual(60 + GRACE);
  });

  it("knows nothing of a grant that was never registered", async () => {
    expect(await ledger.find(newId())).toBeUndefined();
  });

  it("refuses a second registration and keeps the first", async () => {
    const grant = await registered();
    await ledger.revoke(grant.grant_id, "failed", NOW);
    await expect(ledger.register(grant, NOW)).rejects.toThrow("registered twice");
    expect(await ledger.find(grant.grant_id)).toMatchObject({ status: "revoked" });
  });
});

describe("a revocation", () => {
  it("changes status and revision, says when and why, and nothing else", async () => {
    const grant = await registered(["a", nasty]);
    const before = await ledger.find(grant.grant_id);
    await ledger.revoke(grant.grant_id, "cancelled", NOW);
    expect(await ledger.find(grant.grant_id)).toEqual({
      ...before,
      status: "revoked",
      rev: 1,
      revoke_reason: "cancelled",
      revoked_at: NOW * 1000,
    });
    expect(await redis.ttl(ledgerKey(grant.grant_id))).toBeGreaterThan(GRACE);
  });

  it("keeps empty lists as lists", async () => {
    const grant = await registered([]);
    await ledger.revoke(grant.grant_id, "completed", NOW);
    expect(await ledger.find(grant.grant_id)).toMatchObject({
      input_files: [],
      read_sessions: [],
      output_file_ids: [],
    });
  });

  it("counts once: the first reason stays", async () => {
    const grant = await registered();
    await ledger.revoke(grant.grant_id, "failed", NOW);
    await ledger.revoke(grant.grant_id, "completed", NOW + 5);
    expect(await ledger.find(grant.grant_id)).toMatchObject({ rev: 1, revoke_reason: "failed" });
  });

  it("of many at once is one", async () => {
    const grant = await registered([nasty]);
    const reasons = Array.from({ length: 50 }, (_, at) => `reason-${at}`);
    await Promise.all(reasons.map((reason) => ledger.revoke(grant.grant_id, reason, NOW)));
    const record = await ledger.find(grant.grant_id);
    expect(record).toMatchObject({ status: "revoked", rev: 1, input_files: grant.input_files });
    expect(reasons).toContain(record?.revoke_reason);
  });

  it.each([nasty, '"', "%0%1%%", "a\nb", ""])("takes the reason %j as text", async (reason) => {
    const grant = await registered();
    await ledger.revoke(grant.grant_id, reason, NOW);
    expect(await ledger.find(grant.grant_id)).toMatchObject({ status: "revoked", revoke_reason: reason });
  });

  it("of an unknown grant does nothing and makes no record", async () => {
    const id = newId();
    await ledger.revoke(id, "failed", NOW);
    expect(await redis.exists(ledgerKey(id))).toBe(0);
  });

  it("of a record in another form fails instead of leaving it active in silence", async () => {
    const id = newId();
    await redis.set(ledgerKey(id), '{"rev":1,"status":"active"}');
    await expect(ledger.revoke(id, "failed", NOW)).rejects.toThrow("canonical form");
  });
});
