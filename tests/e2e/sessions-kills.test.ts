/**
 * Each component is killed at each step of restoring and saving a session's state. Whatever dies: the state is the old or the new one,
 * whole, the answer says which, and the next run works.
 */

import type { ExecResponse } from "@svc/contracts";
import { killProcess } from "@svc/test-kit/jail/host";
import type { Answer } from "@svc/test-kit/system/api";
import { RUNNER, SANDBOX } from "@svc/test-kit/system/guests";
import { until } from "@svc/test-kit/system/processes";
import { startSecondApi } from "@svc/test-kit/system/second-api";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  newSession,
  type SessionSystem,
  SNAPSHOTS,
  startSessionSystem,
  storedObjects,
  type TestSession,
  unreadBytes,
  type WaitingStep,
  WITHIN_MS,
} from "./support/session-system.ts";

type Component = "api" | "worker" | (typeof SANDBOX)[number] | "egress-gateway" | "file-server" | "redis";
/**
 * Without the API the client has no connection, and without Redis there is no queue: their loss may cost the answer. So may that of the launcher, which is away for
 * longer than a worker waits.
 */
const MAY_COST_THE_ANSWER: ReadonlySet<Component> = new Set(["api", "redis", "launcher"]);
/** More than a request without its body. */
const PART_OF_AN_ARCHIVE = 10_000;

let made: SessionSystem;
beforeAll(async () => {
  made = await startSessionSystem();
});
afterAll(async () => {
  expect(await made.stop()).toEqual([]);
});

async function kill(component: Component): Promise<void> {
  if (component === "redis") {
    await made.server.kill();
    await made.server.start();
  } else killProcess(made.system.pid(component));
}

/** Stops a process. It goes on, if it still lives, by what is answered. */
function stop(component: typeof RUNNER | "file-server"): () => void {
  const pid = made.system.pid(component);
  process.kill(pid, "SIGSTOP");
  const goOn = () => {
    try {
      process.kill(pid, "SIGCONT");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };
  // A test that fails before it kills something lets the others run.
  onTestFinished(goOn);
  return goOn;
}

const unreadOfStorage = () => unreadBytes(made.system.instance.ports["file-server"]);

interface Held {
  running: WaitingStep;
  release: () => void;
}

/** A run that stands where its state is looked up, or moved, in Redis. */
async function heldAtStore(
  session: TestSession,
  what: "command" | "answer",
  when: "begin" | "end",
): Promise<Held> {
  const running = session.begin();
  if (when === "end") await running.waits();
  const held = made.gate.hold(what, session.hint);
  running.goOn();
  await held;
  return { running, release: made.gate.release };
}

const MOMENTS: readonly [string, (session: TestSession) => Promise<Held>, readonly Component[]][] = [
  [
    "its state has been looked up",
    (session) => heldAtStore(session, "answer", "begin"),
    ["api", "worker", "redis"],
  ],
  [
    "its snapshot is fetched",
    async (session) => {
      const release = stop("file-server");
      const running = session.begin();
      running.goOn();
      await until(() => unreadOfStorage() > 0, WITHIN_MS);
      return { running, release };
    },
    ["worker", ...SANDBOX, "egress-gateway", "file-server", "redis"],
  ],
  [
    "its program runs",
    async (session) => {
      const running = session.begin();
      await running.waits();
      return { running, release: running.goOn };
    },
    ["api", "worker", ...SANDBOX],
  ],
  [
    "its workspace is listed",
    async (session) => {
      const running = session.begin();
      await running.waits();
      const release = stop(RUNNER);
      running.goOn();
      await until(running.isGone, WITHIN_MS);
      return { running, release };
    },
    ["worker", ...SANDBOX],
  ],
  [
    "its snapshot is being stored",
    async (session) => {
      const running = session.begin();
      await running.waits();
      const release = stop("file-server");
      running.goOn();
      await until(() => unreadOfStorage() > PART_OF_AN_ARCHIVE, WITHIN_MS);
      return { running, release };
    },
    ["worker", RUNNER, "egress-gateway", "file-server", "redis"],
  ],
  [
    "its snapshot is stored and the session has not moved",
    (session) => heldAtStore(session, "command", "end"),
    ["api", "worker", "redis"],
  ],
  [
    "the session has moved and the answer is not delivered",
    (session) => heldAtStore(session, "answer", "end"),
    ["api", "worker", "redis"],
  ],
];
const CASES = MOMENTS.flatMap(([when, reach, components]) =>
  components.map((component) => ({ when, component, reach })),
);

/** How many steps the session may have, after the answer to its second one. */
function stepsAfter(answer: Answer | undefined): number[] {
  if (answer?.status !== 200) return [1, 2];
  const body = answer.json<ExecResponse>();
  const found = body.session_state_restore_failed ? "0 before\n" : "1 before\n";
  expect(body).toMatchObject({ code: 0, stdout: found });
  expect(body.session_state_conflict).toBeUndefined();
  return body.session_state_persisted ? [2] : [1];
}

const works = async () => {
  const ran = await made.api.tryExec({ lang: "bash", code: "true" }).catch(() => undefined);
  return ran?.status === 200;
};

describe("a run of a session", () => {
  test.each(CASES)("kill -9 of $component while $when", async ({ component, reach }) => {
    const session = await newSession(made);
    const { running, release } = await reach(session);
    await kill(component);
    release();
    const answer = await running.answer;
    if (!MAY_COST_THE_ANSWER.has(component)) expect(answer?.status, answer?.text).toBe(200);
    const allowed = stepsAfter(answer);
    await until(works, WITHIN_MS);
    // The run of a lost client may end after the first of these, which then is not kept.
    let found: number | undefined;
    await until(async () => {
      found = await session.step().catch(() => undefined);
      return found !== undefined;
    }, WITHIN_MS);
    expect(allowed).toContain(found);
    expect(await session.step()).toBe((found as number) + 1);
  });
});

test("what is stored in the end is the state of each session, and nothing else", async () => {
  for (const member of await made.redis.zrange(SNAPSHOTS, "0", "-1"))
    await made.redis.zadd(SNAPSHOTS, "XX", "1", member);
  const api = await startSecondApi(made.system, { ...made.env, SVC_SESSION_STATE_SWEEP_SECONDS: "1" });
  const states = async () => {
    const records = await Promise.all(
      (await made.redis.keys("sessionstate:*")).map((key) => made.redis.hgetall(key)),
    );
    return records
      .filter(({ snapshot_id }) => snapshot_id !== undefined)
      .map(({ snapshot_session, snapshot_id }) => `${snapshot_session}/${snapshot_id}`)
      .toSorted();
  };
  try {
    await expect
      .poll(async () => storedObjects(made).toSorted(), { timeout: WITHIN_MS })
      .toEqual(await states());
  } finally {
    await api.kill();
  }
});
