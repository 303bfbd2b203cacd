/** Sessions in a real Redis: whose state a run begins with, whose becomes the next one, and what a sweep may take. */
import { setTimeout as sleep } from "node:timers/promises";
import { namespaceOf, newId } from "@svc/contracts";
import { type PrivateRedis, startRedis } from "@svc/test-kit/components/redis";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type SessionRun, SessionStore } from "../../src/index.ts";

const RUN_MS = 60_000;
const SNAPSHOTS = "svc:sessions:snapshots";
const NAMESPACE = namespaceOf({ tenantId: "t:1", userId: "a/b" }, { kind: "user" });
const OTHER = namespaceOf({ tenantId: "t", userId: "1:user:a" }, { kind: "user" });

let server: PrivateRedis;
let redis: Redis;
let store: SessionStore;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.socket).on("error", () => {});
});
beforeEach(async () => {
  await redis.flushall();
  store = new SessionStore(redis, 600, RUN_MS);
});
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

const begin = (hint?: string, more: { namespace?: string; from?: SessionStore } = {}) =>
  (more.from ?? store).begin({
    namespace: more.namespace ?? NAMESPACE,
    hint,
    language: "python",
    executionSession: newId(),
    snapshotId: newId(),
  });
const stored = { kind: "stored", size: 7 } as const;
const idsOf = async () => (await store.unneeded()).map(({ id }) => id).sort();
/** As if the time in which runs are over had passed. */
async function runsAreOver(): Promise<void> {
  for (const member of await redis.zrange(SNAPSHOTS, "0", "-1"))
    await redis.zadd(SNAPSHOTS, "XX", "1", member);
}

describe("a session", () => {
  it("begins without a state, and continues with the one that the last run left", async () => {
    const first = await begin("a");
    expect(first.from).toBeUndefined();
    expect(await store.settle(first, stored)).toBe("current");
    const second = await begin("a");
    expect(second).toMatchObject({ sessionId: first.sessionId, from: { ...first.to, size: 7 } });
    expect(await store.settle(second, { kind: "unchanged" })).toBe("current");
    expect((await begin("a")).from).toEqual({ ...first.to, size: 7 });
  });

  it("keeps its state when a run cannot restore it, and when a run leaves nothing", async () => {
    const first = await begin();
    await store.settle(first, stored);
    expect(await store.settle(await begin(), { kind: "failed" })).toBe("failed");
    await begin();
    expect((await begin()).from?.id).toBe(first.to.id);
  });

  it("is one for each hint and each user, and the default one without a hint", async () => {
    const runs = [
      await begin(),
      await begin("a"),
      await begin("a:b"),
      await begin(undefined, { namespace: OTHER }),
      await begin("a", { namespace: OTHER }),
    ];
    expect(new Set(runs.map(({ sessionId }) => sessionId)).size).toBe(runs.length);
    for (const run of runs) await store.settle(run, stored);
    for (const { namespace, hint, to } of runs)
      expect((await begin(hint, { namespace })).from?.id).toBe(to.id);
  });

  it("is found by an execution that used it", async () => {
    const run = await begin("notebook");
    expect(await store.hintOf(NAMESPACE, run.to.storage_session_id)).toBe("notebook");
    expect(await store.hintOf(OTHER, run.to.storage_session_id)).toBeUndefined();
    const plain = await begin();
    expect(await store.hintOf(NAMESPACE, plain.to.storage_session_id)).toBeUndefined();
  });

  it("is found by an execution as long as that is used for it", async () => {
    const { to } = await begin("notebook");
    const key = `svc:sessions:execution:${NAMESPACE}:${to.storage_session_id}`;
    await redis.pexpire(key, 60_000);
    expect(await store.hintOf(NAMESPACE, to.storage_session_id)).toBe("notebook");
    expect(await redis.pttl(key)).toBeGreaterThan(60_000);
  });

  it("leaves the index after its end, when others begin", async () => {
    const short = new SessionStore(redis, 1, 500);
    await begin("a", { from: short });
    await begin("b");
    await begin(undefined);
    while ((await redis.exists(`sessionstate:${NAMESPACE}:a`)) === 1) await sleep(20);
    const hints = (await store.list(NAMESPACE)).map(({ hint }) => hint ?? "");
    expect(hints.toSorted()).toEqual(["", "b"]);
    await begin("c");
    const index = await redis.zrange(`svc:sessions:index:${NAMESPACE}`, "0", "-1");
    expect(index.toSorted()).toEqual(["", "b", "c"]);
  });

  it("is found by its id, by its user alone", async () => {
    const runs = [await begin("a"), await begin(), await begin("b")];
    for (const { sessionId, hint } of runs) {
      const found = await store.find(NAMESPACE, sessionId);
      expect([found?.id, found?.hint]).toEqual([sessionId, hint]);
      expect(await store.find(OTHER, sessionId)).toBeUndefined();
      expect(await store.remove(OTHER, sessionId)).toBe(false);
    }
    expect(await store.find(NAMESPACE, newId())).toBeUndefined();
  });

  it("ends when its user begins one too many and it was used longest ago; its state can be taken", async () => {
    const three = new SessionStore(redis, 600, RUN_MS, 3);
    const ended = await begin("a", { from: three });
    await three.settle(ended, stored);
    const going = await begin("a", { from: three });
    for (const hint of [undefined, "b"]) await begin(hint, { from: three });
    await begin("b", { namespace: OTHER, from: three });
    // The same millisecond is no order: "a" was used before the others.
    await redis.zadd(`svc:sessions:index:${NAMESPACE}`, "1", "a");
    await begin("b", { from: three });
    expect(await store.list(NAMESPACE)).toHaveLength(3);
    await begin("c", { from: three });
    const hints = (await store.list(NAMESPACE)).map(({ hint }) => hint ?? "");
    expect(hints.toSorted()).toEqual(["", "b", "c"]);
    expect(await store.list(OTHER)).toHaveLength(1);
    expect(await three.settle(going, stored)).toBe("gone");
    await runsAreOver();
    expect(await idsOf()).toContain(ended.to.id);
  });

  it("that ended and begins anew takes the place of none", async () => {
    const one = new SessionStore(redis, 600, RUN_MS, 1);
    await begin("a", { from: one });
    await redis.del(`sessionstate:${NAMESPACE}:a`);
    const anew = await begin("a", { from: one });
    expect((await store.list(NAMESPACE)).map(({ id }) => id)).toEqual([anew.sessionId]);
    expect(await one.settle(anew, stored)).toBe("current");
  });

  it("is listed among any number of others", async () => {
    const runs = await Promise.all(Array.from({ length: 1203 }, (_, at) => begin(`s${at}`)));
    const ids = (await store.list(NAMESPACE)).map(({ id }) => id);
    expect(ids.toSorted()).toEqual(runs.map(({ sessionId }) => sessionId).toSorted());
  });

  it("ends with its life, and its state can be taken", async () => {
    const short = new SessionStore(redis, 1, 500);
    const run = await begin("a", { from: short });
    await short.settle(run, stored);
    while ((await redis.exists(`sessionstate:${NAMESPACE}:a`)) === 1) await sleep(20);
    expect(await store.list(NAMESPACE)).toEqual([]);
    expect((await begin("a")).sessionId).not.toBe(run.sessionId);
    await runsAreOver();
    expect(await idsOf()).toContain(run.to.id);
  });
});

describe("of runs at the same time", () => {
  it("the first to end wins, and the others are told", async () => {
    const base = await begin();
    await store.settle(base, stored);
    const runs = [await begin(), await begin(), await begin()] as const;
    expect(await store.settle(runs[1], stored)).toBe("current");
    expect(await store.settle(runs[0], stored)).toBe("conflict");
    expect(await store.settle(runs[2], { kind: "unchanged" })).toBe("conflict");
    expect((await begin()).from?.id).toBe(runs[1].to.id);
  });

  it("exactly one wins each round, in 200 rounds of four", async () => {
    let current: string | undefined;
    for (let round = 0; round < 200; round++) {
      const runs = await Promise.all(Array.from({ length: 4 }, () => begin("race")));
      for (const { from } of runs) expect(from?.id).toBe(current);
      const ends = await Promise.all(runs.map((run) => store.settle(run, stored)));
      expect(ends.toSorted()).toEqual(["conflict", "conflict", "conflict", "current"]);
      current = (runs[ends.indexOf("current")] as SessionRun).to.id;
    }
  });

  it("one that is still going when the session is removed is not saved", async () => {
    for (const hint of [undefined, "a"]) {
      const run = await begin(hint);
      expect(await store.remove(NAMESPACE, run.sessionId)).toBe(true);
      expect(await store.settle(run, stored)).toBe("gone");
      const next = await begin(hint);
      expect(next.from).toBeUndefined();
      expect(await store.settle(run, stored)).toBe("gone");
    }
  });
});

describe("an execution that begins again, since its worker died", () => {
  const again = ({ to, hint }: SessionRun) =>
    store.begin({
      namespace: NAMESPACE,
      hint,
      language: "python",
      executionSession: to.storage_session_id,
      snapshotId: newId(),
    });

  it.each([true, false])(
    "begins with what it began with before, not with what it left (a state: %s)",
    async (had) => {
      const base = await begin("a");
      if (had) await store.settle(base, stored);
      const lost = await begin("a");
      expect(await store.settle(lost, { kind: "stored", size: 8 })).toBe("current");
      const repeated = await again(lost);
      expect(repeated.from).toEqual(lost.from);
      expect(repeated.to.id).not.toBe(lost.to.id);
      expect((await begin("a")).from).toEqual(lost.from);
      expect(await store.settle(repeated, { kind: "stored", size: 9 })).toBe("current");
      expect((await begin("a")).from).toEqual({ ...repeated.to, size: 9 });
      expect(await store.unneeded()).toEqual([]);
      await runsAreOver();
      expect(await idsOf()).toContain(lost.to.id);
      expect(await idsOf()).not.toContain(repeated.to.id);
    },
  );

  it("leaves the state before when it leaves nothing", async () => {
    const base = await begin();
    await store.settle(base, stored);
    const lost = await begin();
    await store.settle(lost, stored);
    await again(lost);
    expect((await begin()).from?.id).toBe(base.to.id);
  });

  it("has a conflict for runs that began with what it took back", async () => {
    const lost = await begin();
    await store.settle(lost, stored);
    const other = await begin();
    expect(other.from?.id).toBe(lost.to.id);
    await again(lost);
    expect(await store.settle(other, stored)).toBe("conflict");
    expect(await store.unneeded()).toMatchObject([{ id: other.to.id }]);
  });

  it("takes nothing back when another run has moved the session on", async () => {
    const lost = await begin();
    await store.settle(lost, stored);
    const other = await begin();
    await store.settle(other, stored);
    expect((await again(lost)).from?.id).toBe(other.to.id);
  });

  it("takes nothing back when a sweep may have the state before", async () => {
    await store.settle(await begin(), stored);
    const lost = await begin();
    await store.settle(lost, stored);
    await runsAreOver();
    expect((await again(lost)).from?.id).toBe(lost.to.id);
  });

  it("leaves nothing to its earlier attempt, however late that ends", async () => {
    const slow = await begin();
    const repeated = await again(slow);
    expect(await store.settle(slow, stored)).toBe("gone");
    expect(await idsOf()).toEqual([slow.to.id]);
    expect(await store.settle(repeated, stored)).toBe("current");
    const next = await begin();
    expect(next.from?.id).toBe(repeated.to.id);
    expect(await store.settle(slow, stored)).toBe("gone");
    expect(await store.settle(next, stored)).toBe("current");
  });
});

describe("a call that arrives a second time, late", () => {
  it.each(["stored", "unchanged"] as const)(
    "settles once, and costs the next run nothing: %s",
    async (kind) => {
      await store.settle(await begin(), stored);
      const run = await begin();
      const left = kind === "stored" ? stored : { kind };
      expect(await store.settle(run, left)).toBe("current");
      const next = await begin();
      expect(await store.settle(run, left)).toBe("current");
      expect(await store.settle(next, stored)).toBe("current");
      expect(await store.settle(run, left)).toBe("current");
      expect((await begin()).from?.id).toBe(next.to.id);
    },
  );

  it("begins once: it takes nothing back, and its run may settle", async () => {
    const options = {
      namespace: NAMESPACE,
      hint: "a",
      language: "python",
      executionSession: newId(),
      snapshotId: newId(),
    };
    const run = await store.begin(options);
    expect(await store.begin(options)).toEqual(run);
    expect(await store.settle(run, stored)).toBe("current");
    await store.begin(options);
    expect((await begin("a")).from?.id).toBe(run.to.id);
  });
});

describe("a state that cannot be restored", () => {
  it("ends the session at the third failure in a row, ten minutes after the first at the earliest", async () => {
    const first = await begin("a");
    await store.settle(first, stored);
    const fail = async () => store.settle(await begin("a"), { kind: "failed" });
    for (let n = 0; n < 5; n++) await fail();
    expect((await begin("a")).from?.id).toBe(first.to.id);
    await redis.hincrby(`sessionstate:${NAMESPACE}:a`, "failing_since", -600_000);
    await fail();
    const next = await begin("a");
    expect(next.from).toBeUndefined();
    expect(next.sessionId).not.toBe(first.sessionId);
  });

  it("begins to count anew when it could be restored in between", async () => {
    await store.settle(await begin(), stored);
    for (let n = 0; n < 2; n++) await store.settle(await begin(), { kind: "failed" });
    await redis.hincrby(`sessionstate:${NAMESPACE}`, "failing_since", -600_000);
    await store.settle(await begin(), { kind: "unchanged" });
    await store.settle(await begin(), { kind: "failed" });
    expect((await begin()).from).toBeDefined();
  });
});

describe("the sweep", () => {
  it("may take what was superseded, lost or abandoned, when no run can need it any more", async () => {
    const first = await begin();
    await store.settle(first, stored);
    const [winner, loser, dead] = [await begin(), await begin(), await begin()] as const;
    await store.settle(winner, stored);
    await store.settle(loser, stored);
    expect(await idsOf()).toEqual([loser.to.id]);
    await runsAreOver();
    expect(await idsOf()).toEqual([first.to.id, loser.to.id, dead.to.id].sort());
    await store.forget(await store.unneeded());
    expect(await store.unneeded()).toEqual([]);
    expect((await begin()).from?.id).toBe(winner.to.id);
  });

  it("never takes a snapshot that a run is still restoring", async () => {
    const first = await begin();
    await store.settle(first, stored);
    await begin();
    await store.settle(await begin(), stored);
    expect(await idsOf()).not.toContain(first.to.id);
    await store.remove(NAMESPACE, first.sessionId);
    expect(await idsOf()).not.toContain(first.to.id);
  });

  it("beats a run that comes too late: what may be deleted does not become a state", async () => {
    const run = await begin();
    await runsAreOver();
    expect(await idsOf()).toEqual([run.to.id]);
    expect(await store.settle(run, stored)).toBe("gone");
    expect((await begin()).from).toBeUndefined();
  });
});

describe("the list of a user's sessions", () => {
  it("has all of them, the last used first, with what is known of each", async () => {
    const a = await begin("a");
    await store.settle(a, stored);
    await sleep(2);
    const plain = await begin();
    const list = await store.list(NAMESPACE);
    expect(list).toEqual([
      {
        id: plain.sessionId,
        created_at: expect.any(Number),
        last_used_at: expect.any(Number),
        expires_at: expect.any(Number),
        language_last: "python",
      },
      expect.objectContaining({ id: a.sessionId, hint: "a", snapshot: { ...a.to, size: 7 } }),
    ]);
    const [{ created_at, last_used_at, expires_at }] = list as [(typeof list)[0]];
    expect(last_used_at).toBe(created_at);
    expect(Math.abs(expires_at - last_used_at - 600_000)).toBeLessThan(5000);
    expect(await store.find(NAMESPACE, a.sessionId)).toEqual(list[1]);
    expect(await store.find(OTHER, a.sessionId)).toBeUndefined();
    expect(await store.remove(OTHER, a.sessionId)).toBe(false);
    expect(await store.remove(NAMESPACE, a.sessionId)).toBe(true);
    expect(await store.list(NAMESPACE)).toHaveLength(1);
  });
});
