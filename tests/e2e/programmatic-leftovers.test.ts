/** Programs with tools that ended in every way leave nothing: no process, no group, no socket, no key but those that are documented. */

import type { Redis } from "@svc/service-kit";
import { slow } from "@svc/test-kit/jail/slowness";
import { RAW_CLIENT } from "@svc/test-kit/programs/raw-client";
import { Api } from "@svc/test-kit/system/api";
import { STEADY_POOL, settledHoldings, untilHeldAsBefore } from "@svc/test-kit/system/holdings";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import {
  declare,
  drive,
  driveOn,
  type Input,
  startPaused,
  tryStart,
} from "@svc/test-kit/system/programmatic";
import { activeExecutions } from "@svc/test-kit/system/runner-metrics";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openStore } from "./support/store.ts";

const MAX_PAUSED = 3;
const EXPIRY_SECONDS = 400;
/** Answers are kept for an eighth longer, so that they are renewed seldom. */
const LONGEST_SECONDS = EXPIRY_SECONDS * 1.125;
const POOLED = 60;
const SOON_MS = slow(20_000);
let system: System;
let api: Api;
let redis: Redis;
beforeAll(async () => {
  const env = {
    ...OPEN_LIMITS,
    ...STEADY_POOL,
    PTC_RESUME_MAX_REQUESTS: "100000",
    SANDBOX_MAX_PAUSED: String(MAX_PAUSED),
    TOOL_CALL_SESSION_EXPIRY: String(EXPIRY_SECONDS),
    PTC_MAX_STATE_BYTES: "1000000",
    JOB_QUEUE_WAIT_MS: `${slow(60_000)}`,
  };
  system = await startSystem({ env });
  api = new Api(system.url);
  redis = openStore(system);
});
afterAll(async () => {
  redis?.disconnect();
  expect(await system?.stop()).toEqual([]);
});

const tools = { add: ({ a, b }: Input) => a + b };
const declared = declare(["add"]);
const completed = (answer: unknown) => expect(answer).toMatchObject({ status: "completed", stdout: "6\n" });

/** Ways in which programs end; what they leave behind is `sleep` or nothing. */
const WAYS: Record<string, () => Promise<unknown>> = {
  completed: async () => {
    completed((await drive(api, { code: "print(add(a=add(a=1, b=2), b=3))" }, tools)).answer);
  },
  "completed in bash, with processes left behind": async () => {
    const code = `sleep 100 & x=$(add '{"a":1,"b":2}'); setsid sleep 100 & add "{\\"a\\":$x,\\"b\\":3}"`;
    completed((await drive(api, { language: "bash", code }, tools)).answer);
  },
  "ended with a call that nobody awaits": async () => {
    const { batches } = await drive(
      api,
      { code: "t = asyncio.ensure_future(add(a=1, b=2)); await asyncio.sleep(0)" },
      tools,
    );
    expect(batches).toEqual([["add"]]);
  },
  failed: async () => {
    const { answer } = await drive(api, { code: "add(a=1, b=2)\nraise SystemExit(3)" }, tools);
    expect(answer).toMatchObject({ status: "error", error_type: "nonzero_exit" });
  },
  "out of time": async () => {
    const { answer } = await drive(api, { code: "add(a=1, b=2)\nwhile True: pass", timeout: 400 }, tools);
    expect(answer).toMatchObject({ status: "error", error_type: "timeout" });
  },
  "at fault": async () => {
    const { answer } = await drive(api, { code: `${RAW_CLIENT}\nissue("x").read()` }, tools);
    expect(answer).toMatchObject({ status: "error", error_type: "unregistered_tool" });
  },
  "too large to be kept": async () => {
    const answer = await tryStart(api, { code: 'add(a="x" * 1_000_000, b="")', tools: declared });
    expect(answer.status).toBe(422);
  },
  "cancelled while paused": async () => {
    const label = newMarker();
    await startPaused(api, { code: "add(a=1, b=2)", tools: declared }, labelled(label));
    expect(await cancel(label)).toBe(1);
  },
  "cancelled while running": async () => {
    const label = newMarker();
    const started = tryStart(api, sleeper(label), labelled(label));
    await until(() => processesWith(label).length > 0, SOON_MS);
    expect(await cancel(label)).toBe(1);
    expect((await started).status).toBe(409);
  },
  "left by its client": async () => {
    const client = new AbortController();
    const marker = newMarker();
    const started = tryStart(api, sleeper(marker), { signal: client.signal });
    started.catch(() => undefined);
    await until(() => processesWith(marker).length > 0, SOON_MS);
    client.abort();
    await expect(started).rejects.toThrow();
  },
  "evicted and run again": async () => {
    const code = "print(add(a=add(a=1, b=2), b=3))";
    const paused = await Promise.all(
      Array.from({ length: 2 * MAX_PAUSED }, () => startPaused(api, { code, tools: declared })),
    );
    expect(await activeExecutions(system, "paused")).toBeLessThanOrEqual(MAX_PAUSED);
    for (const { answer } of await Promise.all(paused.map((pause) => driveOn(api, pause, tools))))
      completed(answer);
  },
};
const labelled = (label: string) => ({ headers: { "x-librechat-code-request-id": label } });
const sleeper = (marker: string) => ({
  language: "bash",
  code: "sleep 60; true",
  args: [marker],
  tools: declared,
});
const cancel = async (label: string) =>
  (await api.post("/exec/programmatic/cancel", { request_id: label })).ok<{ cancelled: number }>().cancelled;

/** What may be there of programs that have ended: how they ended, their answers, and grants that are good for nothing. */
const KEPT = [/^svc:ptc:ID$/, /^svc:ptc:ID:answer:\d+$/, /^svc:egress:grant:ID$/];
const ID = /[A-Za-z0-9_-]{21}(?=$|:)/;

/** Keys of programs that are not documented, or do not lapse in time. */
async function undocumented(): Promise<string[]> {
  const found: string[] = [];
  for (const prefix of ["svc:ptc:", "svc:tool:", "svc:egress:grant:"]) {
    for (const key of await redis.keys(`${prefix}*`)) {
      const life = await redis.ttl(key);
      const lapses = life > 0 && (life <= LONGEST_SECONDS || prefix === "svc:egress:grant:");
      if (!lapses || !KEPT.some((kept) => kept.test(key.replace(ID, "ID")))) found.push(`${key} ${life}`);
    }
  }
  for (const key of await redis.keys("svc:egress:grant:*")) {
    if (JSON.parse((await redis.get(key)) ?? "{}").status !== "revoked") found.push(`${key} is active`);
  }
  return found;
}

test("programs that ended in every way leave nothing but what is documented", async () => {
  const every = async () => {
    for (const [way, happen] of Object.entries(WAYS)) {
      await happen().catch((error: unknown) => {
        throw new Error(`${way}: ${(error as Error).message}`, { cause: error });
      });
    }
  };
  await every();
  const before = await settledHoldings(system);
  await Promise.all([every(), every(), every()]);
  await untilHeldAsBefore(system, before, POOLED);
  expect(
    await Promise.all([activeExecutions(system, "paused"), activeExecutions(system, "running")]),
  ).toEqual([0, 0]);

  let found: string[] = [];
  await until(
    async () => {
      found = await undocumented();
      return found.length === 0;
    },
    SOON_MS,
    () => found,
  );
  expect((await redis.keys("svc:ptc:*:answer:*")).length).toBeGreaterThan(0);
});
