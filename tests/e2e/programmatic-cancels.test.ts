/** Programs with tools that nobody wants any more, or cannot be gone on with now: cancelled, left, and refused for a moment. */

import type { ProgrammaticResponse, ToolCallRequired } from "@svc/contracts";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { slow } from "@svc/test-kit/jail/slowness";
import { type Answer, Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import {
  declare,
  driveOn,
  type Options,
  resultsOf,
  startPaused,
  tryResume,
  tryStart,
} from "@svc/test-kit/system/programmatic";
import { activeExecutions } from "@svc/test-kit/system/runner-metrics";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const APPEAR_MS = slow(20_000);
/** A killed program is gone within a second; the rest is for a busy machine. */
const GONE_MS = slow(15_000);
const QUEUE_WAIT_MS = slow(1500);
const ENV = {
  ...OPEN_LIMITS,
  PTC_RESUME_MAX_REQUESTS: "100000",
  PYTHON_CONCURRENCY: "1",
  JOB_QUEUE_WAIT_MS: String(QUEUE_WAIT_MS),
};
const signer = newSigner();
let system: System;
/** Another replica, and one that demands access tokens. */
let replica: SecondApi;
let withTokens: SecondApi;
let api: Api;
beforeAll(async () => {
  system = await startSystem({ env: ENV });
  const authenticated = { LOCAL_MODE: "false", SVC_JWT_PUBLIC_KEY: signer.pem, SVC_JWT_KID: KID };
  [replica, withTokens] = await Promise.all([
    startSecondApi(system, ENV),
    startSecondApi(system, { ...ENV, ...authenticated }),
  ]);
  api = new Api(system.url);
});
afterAll(async () => {
  expect(await Promise.all([replica?.stop(), withTokens?.stop()])).toEqual([0, 0]);
  expect(await system?.stop()).toEqual([]);
});

const tools = { add: ({ a, b }: { a: number; b: number }) => a + b };
const answersTo = ({ tool_calls }: ToolCallRequired) => resultsOf(tool_calls, tools);
const labelled = (label: string): Options => ({ headers: { "x-librechat-code-request-id": label } });
const as = (claims: Record<string, unknown> = {}): Options => ({
  headers: { authorization: `Bearer ${signer.mint({ claims })}` },
});
/** A program that calls once at once and then runs on, with a word in its command line and its child's. */
const holding = (marker: string) => ({
  language: "bash",
  code: `r=$(add '{"a":1,"b":2}'); python3 -c 'import time; time.sleep(60)' "$1-child" & sleep 60; echo "$r"`,
  args: [marker],
  tools: declare(["add"]),
});
const SHORT = { code: "print(add(a=1, b=2))", tools: declare(["add"]) };
const running = (marker: string) => ({ ...holding(marker), code: "echo begun; sleep 60 & sleep 60; add" });
const cancel = async (label: unknown, at = api, options: Options = {}): Promise<Answer> =>
  at.post("/exec/programmatic/cancel", { request_id: label }, options);
const cancelled = async (label: string, at = api, options: Options = {}) =>
  (await cancel(label, at, options)).ok();
const refused = ({ status, refusal }: Answer) => [status, refusal.error];
const gone = (marker: string) =>
  until(
    () => processesWith(marker).length === 0,
    GONE_MS,
    () => processesWith(marker),
  );
const appeared = (marker: string) => until(() => processesWith(marker).length > 0, APPEAR_MS);

describe("cancelling", () => {
  test("a paused program kills it and spends its token; again there is nothing to cancel", async () => {
    const [marker, label] = [newMarker(), newMarker()];
    const paused = await startPaused(api, holding(marker), labelled(label));
    expect(processesWith(marker)).not.toEqual([]);
    expect(await cancelled(label, new Api(replica.url))).toEqual({ status: "cancelled", cancelled: 1 });
    await gone(marker);
    const answer = await tryResume(api, paused.continuation_token, answersTo(paused));
    expect(refused(answer)).toEqual([400, "execution_expired"]);
    for (const at of [api, new Api(replica.url)]) {
      expect(await cancelled(label, at)).toEqual({ status: "cancelled", cancelled: 0 });
    }
  });

  test.each(["this", "another"])(
    "a running program through %s replica kills it and tells who waits",
    async (which) => {
      const [marker, label] = [newMarker(), newMarker()];
      const started = tryStart(api, running(marker), labelled(label));
      await appeared(marker);
      const at = which === "this" ? api : new Api(replica.url);
      expect(await cancelled(label, at)).toEqual({ status: "cancelled", cancelled: 1 });
      await gone(marker);
      expect(refused(await started)).toEqual([409, "execution_cancelled"]);
      expect(await cancelled(label)).toEqual({ status: "cancelled", cancelled: 0 });
    },
  );

  test("a program that was resumed, by the label of its start or of the resume, ends it alike", async () => {
    for (const by of ["start", "resume"]) {
      const [marker, label, own] = [newMarker(), newMarker(), newMarker()];
      const paused = await startPaused(api, holding(marker), labelled(label));
      const resumed = tryResume(api, paused.continuation_token, answersTo(paused), labelled(own));
      await appeared(`${marker}-child`);
      expect(await cancelled(by === "start" ? label : own, new Api(replica.url))).toEqual({
        status: "cancelled",
        cancelled: 1,
      });
      await gone(marker);
      expect(refused(await resumed)).toEqual([409, "execution_cancelled"]);
      const again = await tryResume(api, paused.continuation_token, answersTo(paused));
      expect(refused(again)).toEqual([400, "execution_expired"]);
    }
  });

  test("a program whose API was killed during its start kills it", async () => {
    const [marker, label] = [newMarker(), newMarker()];
    const second = await startSecondApi(system, ENV);
    const started = tryStart(new Api(second.url), running(marker), labelled(label));
    started.catch(() => undefined);
    await appeared(marker);
    await second.kill();
    await expect(started).rejects.toThrow();
    expect(await cancelled(label)).toEqual({ status: "cancelled", cancelled: 1 });
    await gone(marker);
    expect(await cancelled(label)).toEqual({ status: "cancelled", cancelled: 0 });
  });

  test("a program that is run again from the top, and whose API has ended meanwhile, kills it", async () => {
    const [marker, label] = [newMarker(), newMarker()];
    const second = await startSecondApi(system, { ...ENV, PTC_MODE: "replay" });
    const at = new Api(second.url);
    const paused = await startPaused(at, holding(marker), labelled(label));
    const resumed = tryResume(at, paused.continuation_token, answersTo(paused));
    await appeared(`${marker}-child`);
    expect(await second.stop()).toBe(0);
    expect((await resumed).status).toBe(503);
    expect(await cancelled(label)).toEqual({ status: "cancelled", cancelled: 1 });
    await gone(`${marker}-child`);
    const again = await tryResume(api, paused.continuation_token, answersTo(paused));
    expect(refused(again)).toEqual([400, "execution_expired"]);
  });

  test("cancels all programs of a label, and no others", async () => {
    const [mine, other] = [newMarker(), newMarker()];
    const label = newMarker();
    await Promise.all([1, 2].map(() => startPaused(api, holding(mine), labelled(label))));
    const theirs = new Api(withTokens.url);
    const alice = as({ sub: "alice" });
    const hers = await startPaused(theirs, holding(other), {
      headers: { ...alice.headers, ...labelled(label).headers },
    });
    expect(await cancelled(label, theirs, as({ sub: "bob" }))).toEqual({ status: "cancelled", cancelled: 0 });
    expect(await cancelled(label)).toEqual({ status: "cancelled", cancelled: 2 });
    await gone(mine);
    expect(processesWith(other)).not.toEqual([]);
    expect(await cancelled(label, theirs, alice)).toEqual({ status: "cancelled", cancelled: 1 });
    await gone(other);
    const answer = await tryResume(theirs, hers.continuation_token, answersTo(hers), alice);
    expect(refused(answer)).toEqual([400, "execution_expired"]);
  });

  test("needs a label; one that nobody has cancels nothing, nor does an ended program's", async () => {
    for (const label of ["", null, undefined, 7, ["x"], {}]) {
      expect(refused(await cancel(label))).toEqual([400, "invalid_request"]);
    }
    expect(await cancelled(newMarker())).toEqual({ status: "cancelled", cancelled: 0 });
    const label = newMarker();
    const ended = await tryStart(api, { ...running(""), code: "echo done" }, labelled(label));
    expect(ended.ok()).toMatchObject({ status: "completed", stdout: "done\n" });
    expect(await cancelled(label)).toEqual({ status: "cancelled", cancelled: 0 });
  });
});

describe("a client that leaves", () => {
  test("during a start takes its program along", async () => {
    const marker = newMarker();
    const client = new AbortController();
    const started = tryStart(api, running(marker), { signal: client.signal });
    started.catch(() => undefined);
    await appeared(marker);
    client.abort();
    await expect(started).rejects.toThrow();
    await gone(marker);
    await until(async () => (await activeExecutions(system, "running")) === 0, APPEAR_MS);
    expect(await activeExecutions(system, "paused")).toBe(0);
  });

  test("during a resume does not: the round goes on, once, and its answer is kept", async () => {
    const marker = newMarker();
    const code = `x = add(a=1, b=2)
import time, uuid
time.sleep(${slow(5)})
print(uuid.uuid4(), add(a=x, b=x))`;
    const paused = await startPaused(api, { code, args: [marker], tools: declare(["add"]) });
    const client = new AbortController();
    const left = tryResume(api, paused.continuation_token, answersTo(paused), { signal: client.signal });
    left.catch(() => undefined);
    await until(async () => (await activeExecutions(system, "paused")) === 0, APPEAR_MS);
    client.abort();
    await expect(left).rejects.toThrow();
    // It pauses again with nobody there.
    await until(async () => (await activeExecutions(system, "paused")) === 1, APPEAR_MS);
    const again = () => tryResume(api, paused.continuation_token, answersTo(paused));
    const next = (await again()).ok<ToolCallRequired>();
    expect((await again()).ok()).toEqual(next);
    expect(next).toMatchObject({ status: "tool_call_required", tool_calls_made: 2 });
    const { answer } = await driveOn(api, next, tools);
    expect(answer.stdout).toMatch(/^[0-9a-f-]{36} 6\n$/);
  });
});

describe("a resume that cannot be served now", () => {
  test("because the queue is full is a 503, and its token stays good", async () => {
    const paused = await startPaused(api, SHORT);
    const marker = newMarker();
    const busy = new AbortController();
    const occupying = api.exec(
      { lang: "py", code: "import time\ntime.sleep(60)", args: [marker] },
      { signal: busy.signal },
    );
    occupying.catch(() => undefined);
    await appeared(marker);
    const resumes = () => tryResume(api, paused.continuation_token, answersTo(paused));
    for (const answer of await Promise.all([resumes(), resumes()])) {
      expect(refused(answer)).toEqual([503, "queue_saturated"]);
      expect(answer.json()).toMatchObject({ status: "error", error_type: "infrastructure" });
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    }
    expect(await activeExecutions(system, "paused")).toBe(1);
    busy.abort();
    await gone(marker);
    expect((await resumes()).ok<ProgrammaticResponse>()).toMatchObject({
      status: "completed",
      stdout: "3\n",
    });
  });

  test("because the state store is away is a 503, and its token stays good", async () => {
    const paused = await startPaused(api, SHORT);
    const redis = system.pid("redis");
    process.kill(redis, "SIGSTOP");
    try {
      const answer = await tryResume(api, paused.continuation_token, answersTo(paused));
      expect(refused(answer)).toEqual([503, "store_unavailable"]);
    } finally {
      process.kill(redis, "SIGCONT");
    }
    await until(() => api.send("GET", "/health").then(({ status }) => status === 200), APPEAR_MS);
    expect((await driveOn(api, paused, tools)).answer).toMatchObject({ status: "completed", stdout: "3\n" });
  });
});
