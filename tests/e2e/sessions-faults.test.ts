/** What a run of a session costs when something fails: never its result, and of the state no more than the answer says. */

import { readFileSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import { type ExecResponse, snapshotNamespaceOf } from "@svc/contracts";
import { until } from "@svc/test-kit/system/processes";
import { activeExecutions } from "@svc/test-kit/system/runner-metrics";
import { SandboxSide } from "@svc/test-kit/system/sandbox-side";
import { SmallDisk } from "@svc/test-kit/system/small-disk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectToHeal, withoutStorage } from "./support/faults.ts";
import {
  newSession,
  type SessionSystem,
  snapshotPath,
  startSessionSystem,
  storedObjects,
  type TestSession,
  unreadBytes,
  type WaitingStep,
  WITHIN_MS,
} from "./support/session-system.ts";

const EMPTY = "[sandbox] The previous session could not be restored; this run started empty\n";
const NOT_SAVED = { session_state_persisted: false, session_state_restore_failed: false };
const NOT_RESTORED = {
  code: 0,
  stdout: "0 before\n",
  stderr: EMPTY,
  session_state_persisted: false,
  session_state_restore_failed: true,
};
const HALF_OF_A_STATE = 150_000;
const TEN_MINUTES_MS = 600_000;

let disk: SmallDisk;
let made: SessionSystem;
beforeAll(async () => {
  disk = new SmallDisk("size=192m");
  made = await startSessionSystem({ SVC_DATA_DIR: disk.folder });
});
afterAll(async () => {
  const left = await made?.stop();
  disk.remove();
  expect(left).toEqual([]);
});

async function waiting(session: TestSession, more?: string): Promise<WaitingStep> {
  const running = session.begin(more);
  await running.waits();
  return running;
}

async function answerOf({ goOn, answer }: WaitingStep): Promise<ExecResponse | undefined> {
  goOn();
  return (await answer)?.ok<ExecResponse>();
}

/** What standard error says beside what the shell says of the process that the test ended. */
const notesOf = (answer: ExecResponse | undefined) =>
  answer?.stderr.split("\n").filter((line) => line.startsWith("[sandbox] "));

/** Redis refuses every command on the record of a session, while the work is done. */
async function withoutRecords<T>(work: () => Promise<T>): Promise<T> {
  const forbidden = "sessionstate";
  const others = [...forbidden].map((letter, at) => `~${forbidden.slice(0, at)}[^${letter}]*`);
  await made.redis.call("ACL", "SETUSER", "default", "resetkeys", ...others);
  try {
    return await work();
  } finally {
    await made.redis.call("ACL", "SETUSER", "default", "allkeys");
  }
}

describe("a state that cannot be saved costs no result, and the state before stays", () => {
  test("when storage is away, with a note; an output that cannot be stored has one of its own", async () => {
    const [session, other] = [await newSession(made), await newSession(made)];
    const steps = [await waiting(session), await waiting(other, "echo 1 > out")];
    const [unsaved, undelivered] = await withoutStorage(made.system, () => Promise.all(steps.map(answerOf)));
    expect(unsaved).toMatchObject({ code: 0, stdout: "1 before\n", ...NOT_SAVED });
    expect(notesOf(unsaved)).toEqual(["[sandbox] Session not saved: it could not be stored"]);
    expect(undelivered).toMatchObject({
      code: 0,
      stdout: "1 before\n",
      artifact_delivery: { status: "failed", attempted: 1, failed: 1 },
      ...NOT_SAVED,
    });
    expect(notesOf(undelivered)).toEqual([
      "[sandbox] Output file omitted: out (upload_failed)",
      "[sandbox] Session not saved: an output could not be stored",
    ]);
    expect([await session.step(), await other.step()]).toEqual([1, 1]);
  });

  test("when the disk has room for outputs and none for it, with a note, and nothing of it is left", async () => {
    const session = await newSession(made);
    const running = await waiting(session, "echo 1 > out");
    const before = storedObjects(made);
    const free = disk.fill(HALF_OF_A_STATE);
    try {
      const answer = await answerOf(running);
      expect(answer).toMatchObject({
        code: 0,
        stdout: "1 before\n",
        files: [{ name: "out", size: 2 }],
        ...NOT_SAVED,
      });
      expect(answer).not.toHaveProperty("artifact_delivery");
      expect(notesOf(answer)).toEqual(["[sandbox] Session not saved: it could not be stored"]);
      const [out] = answer?.files ?? [];
      const added = storedObjects(made).filter((path) => !before.includes(path));
      expect(added.map((path) => path.includes(String(out?.id)))).toEqual([true]);
    } finally {
      free();
      await expectToHeal(made.system);
    }
    expect(await session.step()).toBe(1);
  });

  test("when Redis refuses to move the session", async () => {
    const session = await newSession(made);
    const running = await waiting(session);
    const answer = await withoutRecords(() => answerOf(running));
    expect(answer).toMatchObject({ code: 0, stdout: "1 before\n", ...NOT_SAVED });
    expect(answer).not.toHaveProperty("session_state_conflict");
    expect(await session.step()).toBe(1);
  });

  test("when the client leaves while it is stored", async () => {
    const session = await newSession(made);
    const running = await waiting(session);
    const storage = made.system.pid("file-server");
    process.kill(storage, "SIGSTOP");
    try {
      running.goOn();
      await until(() => unreadBytes(made.system.instance.ports["file-server"]) > 10_000, WITHIN_MS);
      running.leave();
      expect(await running.answer).toBeUndefined();
      await until(async () => (await activeExecutions(made.system, "running")) === 0, WITHIN_MS);
    } finally {
      process.kill(storage, "SIGCONT");
    }
    expect(await session.step()).toBe(1);
  });
});

describe("a state that cannot be looked up", () => {
  test("since storage is away: the run begins with nothing and says so, and that never ends the session", async () => {
    const session = await newSession(made);
    const answer = await withoutStorage(made.system, session.tryStep);
    expect(answer).toMatchObject(NOT_RESTORED);
    expect(await session.record()).not.toHaveProperty("failures");
    expect(await session.step()).toBe(1);
  });

  test("since Redis refuses: the same", async () => {
    const session = await newSession(made);
    expect(await withoutRecords(session.tryStep)).toMatchObject(NOT_RESTORED);
    expect(await session.step()).toBe(1);
  });
});

/** Spoils the stored snapshot; what is answered takes that back. */
const DAMAGES: Record<string, (path: string) => () => void> = {
  "that is shorter": (path) => {
    const whole = readFileSync(path);
    truncateSync(path, whole.length >> 1);
    return () => writeFileSync(path, whole);
  },
  "with other bytes": (path) => {
    const whole = readFileSync(path);
    const middle = whole.length >> 1;
    writeFileSync(path, Buffer.from(whole).fill(0, middle, middle + 16));
    return () => writeFileSync(path, whole);
  },
  "that is gone": (path) => {
    renameSync(path, `${path}.away`);
    return () => renameSync(`${path}.away`, path);
  },
};

/** What listing the files of a session answers then. */
const LISTING: Record<string, [status: number, code: string, message: RegExp]> = {
  "that is shorter": [502, "input_unavailable", /^The state of the session is missing or damaged\. Delete/],
  "with other bytes": [503, "storage_unavailable", /^The state of the session cannot be read now\. .*Delete/],
  "that is gone": [502, "input_unavailable", /^The state of the session is missing or damaged\. Delete/],
};

describe("a damaged snapshot", () => {
  test.each(Object.keys(DAMAGES))(
    "%s costs the state of the runs that meet it, and comes back",
    async (what) => {
      const session = await newSession(made);
      const before = await session.record();
      const takeBack = DAMAGES[what]?.(snapshotPath(made, before)) as () => void;
      expect(await session.tryStep()).toMatchObject(NOT_RESTORED);
      const after = await session.record();
      expect(after).toMatchObject({ failures: "1", id: before.id, snapshot_id: before.snapshot_id });
      const list = () => made.api.send("GET", `/sessions/${before.id}/files`);
      const { status, refusal } = await list();
      const [expected, code, message] = LISTING[what] ?? [];
      expect([status, refusal.error]).toEqual([expected, code]);
      expect(refusal.message).toMatch(message as RegExp);
      takeBack();
      expect((await list()).ok<{ files: unknown[] }>().files).toHaveLength(4);
      expect(await session.step()).toBe(1);
      expect(await session.record()).not.toHaveProperty("failures");
    },
  );

  test("that is no archive costs the same; three failures over ten minutes end the session", async () => {
    const session = await newSession(made);
    const key = await session.key();
    const namespace = key.slice("sessionstate:".length, -session.hint.length - 1);
    const text = "no archive";
    const stored = await new SandboxSide(made.system).store(snapshotNamespaceOf(namespace), "a.tar", text);
    await made.redis.hset(key, { snapshot_id: stored.id, snapshot_session: stored.session_id });
    for (let failure = 1; failure < 3; failure++) expect(await session.tryStep()).toMatchObject(NOT_RESTORED);
    await made.redis.hincrby(key, "failing_since", -TEN_MINUTES_MS);
    expect(await session.record()).toMatchObject({ failures: "2", snapshot_id: stored.id });
    expect(await session.tryStep()).toMatchObject(NOT_RESTORED);
    expect(await session.record()).toEqual({});
    expect([await session.step(), await session.step()]).toEqual([0, 1]);
  });
});
