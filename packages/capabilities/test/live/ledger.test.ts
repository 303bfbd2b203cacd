import { setTimeout as sleep } from "node:timers/promises";
import { newId, ServiceError } from "@svc/contracts";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { grantWith } from "@svc/test-kit/credentials/grants";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  type Charge,
  charge,
  type Grant,
  Ledger,
  type LedgerOptions,
  type LedgerRecord,
  ledgerKey,
  refund,
  revoke,
} from "../../src/index.ts";
import { startLossyProxy } from "../support/lossy-proxy.ts";

const NOW = Math.floor(Date.now() / 1000);
const GRACE = 300;
const read: Charge = { kind: "reads", count: 1 };
let server: PrivateRedis;
let redis: Redis;
let ledger: Ledger;
const opened: Ledger[] = [];

function newLedger(change: Partial<LedgerOptions> = {}): Ledger {
  const open = () => new Redis(server.socket, { commandTimeout: 3000 }).on("error", () => {});
  const made = new Ledger({ open, connections: 32, graceSeconds: GRACE, ...change });
  opened.push(made);
  return made;
}

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.socket).on("error", () => {});
  ledger = newLedger();
});
afterEach(() => {
  for (const one of opened.splice(1)) one.close();
});
afterAll(async () => {
  for (const one of opened) one.close();
  redis.disconnect();
  await server.stop();
});

async function registered(change: Parameters<typeof grantWith>[0] = {}): Promise<Grant> {
  const grant = grantWith(change);
  await ledger.register(grant, NOW);
  return grant;
}

const storedRecord = async ({ grant_id }: Grant) =>
  JSON.parse((await redis.get(ledgerKey(grant_id))) ?? "null") as LedgerRecord;

/** Charges; the refusal is the answer. */
async function pay(at: Ledger, { grant_id }: Grant, cost: Charge): Promise<string> {
  try {
    await at.change(grant_id, (record) => {
      if (record === undefined) throw new Error("missing");
      if (record.status !== "active") throw new Error("revoked");
      const charged = charge(record, cost);
      if (typeof charged === "string") throw new Error(charged);
      return charged;
    });
    return "paid";
  } catch (error) {
    return (error as Error).message;
  }
}

const revokeAt = (at: Ledger, { grant_id }: Grant, reason = "failed") =>
  at.change(grant_id, (record) => record && revoke(record, reason, NOW * 1000));

const count = (answers: string[]) => {
  const counts: Record<string, number> = {};
  for (const answer of answers) counts[answer] = (counts[answer] ?? 0) + 1;
  return counts;
};

describe("the ledger", () => {
  it("keeps the record of a grant for its life and the grace after it, also through changes", async () => {
    const grant = await registered();
    expect(await pay(ledger, grant, read)).toBe("paid");
    expect(await storedRecord(grant)).toMatchObject({ status: "active", rev: 1, request_count: 1 });
    const ttl = await redis.ttl(ledgerKey(grant.grant_id));
    const life = grant.exp - NOW + GRACE;
    expect(ttl).toBeGreaterThan(life - 10);
    expect(ttl).toBeLessThanOrEqual(life);
  });

  it("knows nothing of a grant that was never registered, and makes no record of it", async () => {
    const id = newId();
    expect(await ledger.find(id)).toBeUndefined();
    expect(await ledger.change(id, (record) => record && revoke(record, "failed", 1))).toBeUndefined();
    expect(await redis.exists(ledgerKey(id))).toBe(0);
  });

  it("refuses a second registration and keeps the first", async () => {
    const grant = await registered();
    await revokeAt(ledger, grant);
    await expect(ledger.register(grant, NOW)).rejects.toThrow("registered twice");
    expect(await storedRecord(grant)).toMatchObject({ status: "revoked" });
  });

  it.each([
    ["one gateway", 1],
    ["four gateways", 4],
  ])(
    "64 clients of %s racing for the last requests, bytes and files use exactly the budget",
    async (_what, gateways) => {
      const at = Array.from({ length: gateways }, () => newLedger());
      const race = (grant: Grant, cost: (client: number) => Charge) =>
        Promise.all(
          Array.from({ length: 64 }, (_, client) =>
            pay(at[client % gateways] as Ledger, grant, cost(client)),
          ),
        ).then(count);
      const write =
        (bytes: number) =>
        (client: number): Charge => ({
          kind: "write",
          fileId: `file-${client}`,
          bytes,
          attempt: newId(),
        });

      const requests = await registered({ max_requests: 20 });
      expect(await race(requests, () => read)).toEqual({ paid: 20, request_budget: 44 });
      expect(await storedRecord(requests)).toMatchObject({ request_count: 20, read_count: 20 });

      const last = await registered({ max_requests: 1 });
      expect(await race(last, () => read)).toEqual({ paid: 1, request_budget: 63 });

      const bytes = await registered({ max_upload_bytes: 1000, max_output_files: 100 });
      expect(await race(bytes, write(37))).toEqual({ paid: 27, upload_bytes: 37 });
      expect(await storedRecord(bytes)).toMatchObject({ uploaded_bytes: 27 * 37, upload_count: 27 });

      const files = await registered({ max_output_files: 7 });
      expect(await race(files, write(0))).toEqual({ paid: 7, output_files: 57 });

      const same = await registered();
      const tries = (): Charge => ({ kind: "write", fileId: "same", bytes: 1, attempt: newId() });
      expect(await race(same, tries)).toEqual({ paid: 16, file_id_reused: 48 });
      expect(await storedRecord(same)).toMatchObject({
        uploaded_bytes: 1,
        upload_count: 1,
        request_count: 16,
      });
    },
  );

  it("does not let a copy decide: what another gateway changed counts", async () => {
    const other = newLedger();
    const grant = await registered({ max_output_files: 1 });
    const upload = { fileId: "a", bytes: 1, attempt: newId() };
    expect(await pay(ledger, grant, { kind: "write", ...upload })).toBe("paid");
    const next: Charge = { kind: "write", fileId: "b", bytes: 1, attempt: newId() };
    expect(await pay(ledger, grant, next)).toBe("output_files");
    await other.change(grant.grant_id, (record) => record && refund(record, upload));
    expect(await pay(ledger, grant, next)).toBe("paid");
    await revokeAt(other, grant);
    expect(await pay(ledger, grant, read)).toBe("revoked");
  });

  it("makes the changes that wait for each other in one swap, and refuses what does not fit in the line", async () => {
    const grant = await registered({ max_requests: 5 });
    const narrow = newLedger({ waiting: 8 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => pay(narrow, grant, read)));
    const conflict = new ServiceError("ledger_conflict").message;
    expect(count(answers)).toEqual({ paid: 5, request_budget: 4, [conflict]: 11 });
    expect(await storedRecord(grant)).toMatchObject({ request_count: 5, rev: 2 });
    expect(await pay(narrow, grant, read)).toBe("request_budget");
  });

  it("gives up with ledger_conflict when the record keeps changing", async () => {
    // Commands of one connection are done in their order: each change is behind another one.
    const shared = new Redis(server.socket).on("error", () => {});
    const behind = newLedger({ open: () => shared, connections: 1 });
    const grant = grantWith();
    await behind.register(grant, NOW);
    let tries = 0;
    const change = behind.change(grant.grant_id, (record) => {
      if (record === undefined) throw new Error("missing");
      tries++;
      const text = JSON.stringify({ ...record, rev: record.rev + 1, changes: [newId()] });
      void shared.set(ledgerKey(grant.grant_id), text, "KEEPTTL");
      return { ...record, request_count: 99 };
    });
    await expect(change).rejects.toMatchObject({ code: "ledger_conflict", status: 503 });
    expect(tries).toBe(32);
    expect((await storedRecord(grant)).request_count).toBe(0);
  });
});

describe("a revocation", () => {
  it("changes status and revision, says when and why, and nothing else; the first reason stays", async () => {
    const grant = await registered({
      input_files: [{ id: newId(), session_id: newId(), name: '","status":"active","rev":7,"x":"%1\\é🎉' }],
    });
    const before = await storedRecord(grant);
    await revokeAt(ledger, grant, "cancelled");
    await revokeAt(newLedger(), grant, "completed");
    expect(await storedRecord(grant)).toEqual({
      ...before,
      rev: 1,
      changes: [expect.stringMatching(/^[\w-]{21}$/), ...before.changes],
      status: "revoked",
      revoke_reason: "cancelled",
      revoked_at: NOW * 1000,
    });
    expect(await redis.ttl(ledgerKey(grant.grant_id))).toBeGreaterThan(GRACE);
  });

  // A gateway that writes without a pause needs one round trip for a change, another one two: it must not lose each time.
  it.each(Array.from({ length: 40 }, (_, round) => round))(
    "in the middle of traffic through several gateways stops it for good (%i)",
    async () => {
      const at = [ledger, newLedger(), newLedger()];
      const grant = await registered();
      let stop = false;
      let revoked = false;
      let paid = 0;
      const late: string[] = [];
      const clients = Array.from({ length: 12 }, async (_, client) => {
        while (!stop) {
          const began = revoked;
          const answer = await pay(at[client % 3] as Ledger, grant, read);
          if (began) late.push(answer);
          else if (answer === "paid") paid++;
        }
      });
      await expect.poll(() => paid).toBeGreaterThan(24);
      await revokeAt(newLedger(), grant);
      revoked = true;
      const { request_count } = await storedRecord(grant);
      await expect.poll(() => late.length).toBeGreaterThan(24);
      stop = true;
      await Promise.all(clients);
      expect(request_count).toBeGreaterThan(0);
      expect(new Set(late)).toEqual(new Set(["revoked"]));
      expect(await storedRecord(grant)).toMatchObject({ status: "revoked", request_count });
    },
  );
});

describe("connections", () => {
  it("are opened when needed, at most as many as allowed, and more work waits for them", async () => {
    const few = newLedger({ connections: 3 });
    expect(few.connections).toBe(0);
    const grants = await Promise.all(Array.from({ length: 64 }, () => registered()));
    await pay(few, grants[0] as Grant, read);
    expect(few.connections).toBe(1);
    const answers = await Promise.all(grants.map((grant) => pay(few, grant, read)));
    expect(count(answers)).toEqual({ paid: 64 });
    expect(few.connections).toBe(3);
  });

  it("have a bounded line before them: what does not fit is told so at once", async () => {
    const narrow = newLedger({ connections: 1, waiting: 5 });
    const grants = await Promise.all(Array.from({ length: 20 }, () => registered()));
    const results = await Promise.allSettled(grants.map(({ grant_id }) => narrow.find(grant_id)));
    const refused = results.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(14);
    for (const { reason } of refused as PromiseRejectedResult[]) {
      expect(reason).toMatchObject({ code: "ledger_conflict", status: 503 });
    }
  });
});

describe("when the store fails", () => {
  it("a change whose answer was lost with its connection is made once", async () => {
    const grant = await registered();
    // The server makes the change, but the client's end is cut before the answer can be read; the client sends it again.
    let cut: Redis | undefined;
    const fragile = newLedger({
      open: () => {
        cut = new Redis(server.socket, { retryStrategy: () => 10 }).on("error", () => {});
        return cut;
      },
    });
    expect(await pay(fragile, grant, read)).toBe("paid");
    for (let round = 1; round <= 20; round++) {
      const payment = pay(fragile, grant, read);
      await new Promise((resolve) => setImmediate(resolve));
      cut?.stream?.destroy();
      expect(await payment).toBe("paid");
      expect((await storedRecord(grant)).request_count).toBe(1 + round);
    }
  });

  it("a change that arrives twice, with changes of other gateways in between, is made once", async () => {
    const grant = await registered();
    const proxy = await startLossyProxy(server.socket);
    const fragile = newLedger({ open: () => new Redis(proxy.socket, { retryStrategy: () => 10 }) });
    try {
      expect(await pay(fragile, grant, read)).toBe("paid");
      proxy.swallow = true;
      const payment = pay(fragile, grant, read);
      await expect.poll(() => storedRecord(grant)).toMatchObject({ request_count: 2 });
      for (let other = 0; other < 8; other++) expect(await pay(ledger, grant, read)).toBe("paid");
      proxy.swallow = false;
      proxy.cut();
      expect(await payment).toBe("paid");
      expect(await storedRecord(grant)).toMatchObject({ request_count: 10, rev: 10 });
    } finally {
      fragile.close();
      await proxy.stop();
    }
  });

  it("and comes back with an older record, what this process saw of the later one still counts", async () => {
    const grant = await registered({ max_requests: 5 });
    const key = ledgerKey(grant.grant_id);
    expect(await pay(ledger, grant, read)).toBe("paid");
    const older = (await redis.get(key)) ?? "";
    for (let more = 0; more < 3; more++) expect(await pay(ledger, grant, read)).toBe("paid");
    await redis.set(key, older, "KEEPTTL");
    expect(await pay(ledger, grant, read)).toBe("paid");
    expect(await storedRecord(grant)).toMatchObject({ request_count: 5, rev: 5 });
    expect(await pay(ledger, grant, read)).toBe("request_budget");
    await revokeAt(ledger, grant);
    await redis.set(key, older, "KEEPTTL");
    expect(await pay(ledger, grant, read)).toBe("revoked");
    expect((await ledger.find(grant.grant_id))?.status).toBe("revoked");
  });

  it("and is killed under traffic, it comes back with every charge that was paid, and no budget is passed", async () => {
    const kept = await startRedis({ kept: true });
    const look = new Redis(kept.socket).on("error", () => {});
    const at = newLedger({
      open: () => new Redis(kept.socket, { retryStrategy: () => 20 }).on("error", () => {}),
    });
    try {
      const grant = grantWith({ max_requests: 3000, max_upload_bytes: 5000, max_output_files: 1000 });
      await at.register(grant, NOW);
      const paid = { requests: 0, bytes: 0 };
      const failures: string[] = [];
      let spent = 0;
      const clients = Array.from({ length: 64 }, async (_, client) => {
        while (spent < 64) {
          const bytes = client % 4 === 0 ? 10 : 0;
          const upload: Charge = { kind: "write", fileId: newId(), bytes, attempt: newId() };
          const answer = await pay(at, grant, bytes > 0 ? upload : read);
          if (answer === "paid") {
            paid.requests++;
            paid.bytes += bytes;
          } else if (answer === "request_budget") spent++;
          else if (answer !== "upload_bytes" && answer !== "output_files") failures.push(answer);
          if (answer !== "paid") await sleep(5);
        }
      });
      for (let round = 1; round <= 3; round++) {
        const goal = round * 400;
        await expect.poll(() => paid.requests, { timeout: 20_000 }).toBeGreaterThan(goal);
        await kept.kill();
        await kept.start();
      }
      await Promise.all(clients);
      const record = JSON.parse((await look.get(ledgerKey(grant.grant_id))) ?? "null") as LedgerRecord;
      expect(record.request_count).toBe(3000);
      expect(record.uploaded_bytes).toBeLessThanOrEqual(5000);
      // A call that got no answer may have been charged; nothing else may differ.
      expect(paid.requests).toBeLessThanOrEqual(3000);
      expect(paid.requests + failures.length).toBeGreaterThanOrEqual(3000);
      expect(paid.bytes).toBeLessThanOrEqual(record.uploaded_bytes);
      expect(new Set(failures)).not.toContain("missing");
    } finally {
      look.disconnect();
      await kept.stop();
    }
  }, 60_000);

  it("changes fail, nothing is let through on a copy, and it works again when the store is back", async () => {
    const grant = await registered();
    expect(await pay(ledger, grant, read)).toBe("paid");
    await server.kill();
    const answers = await Promise.all(Array.from({ length: 5 }, () => pay(ledger, grant, read)));
    expect(answers).not.toContain("paid");
    await server.start();
    expect(await pay(ledger, grant, read)).toBe("missing");
    const next = await registered();
    expect(await pay(ledger, next, read)).toBe("paid");
  });
});
