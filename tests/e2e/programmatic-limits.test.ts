/** What a program with tools may take: sizes, time between its rounds, and requests of its caller. */

import type { ToolCallRequired } from "@svc/contracts";
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
  type Start,
  startPaused,
  tryResume,
  tryStart,
} from "@svc/test-kit/system/programmatic";
import { activeExecutions } from "@svc/test-kit/system/runner-metrics";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const MAX_RESULT = 5_000_000;
const MAX_HISTORY = 12_000_000;
const MAX_STATE = 2_000_000;
const MAX_BODY = 8 * 2 ** 20;
const LIVE_MS = slow(4000);
/** Sooner than a paused program goes by itself. */
const GONE_MS = slow(3000);
/** Long after LIVE_MS, so that a busy machine resumes in between. */
const EXPIRY_MS = slow(24_000);
const SOON_MS = slow(20_000);
const STARTS = 3;
const RESUMES = 6;
const WINDOW_MS = slow(8000);

const signer = newSigner();
let system: System;
let limited: SecondApi;
let api: Api;
beforeAll(async () => {
  const env = {
    ...OPEN_LIMITS,
    PTC_MAX_HISTORY_BYTES: String(MAX_HISTORY),
    PTC_MAX_STATE_BYTES: String(MAX_STATE),
    SVC_HTTP_JSON_LIMIT: String(MAX_BODY),
    TOOL_CALL_REQUEST_TIMEOUT: String(LIVE_MS),
    TOOL_CALL_SESSION_EXPIRY: String(EXPIRY_MS / 1000),
  };
  system = await startSystem({ env });
  limited = await startSecondApi(system, {
    ...env,
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
    MAX_REQUESTS: String(STARTS),
    RATE_LIMIT_WINDOW: String(WINDOW_MS),
    PTC_RESUME_MAX_REQUESTS: String(RESUMES),
    PTC_RESUME_WINDOW: String(WINDOW_MS),
  });
  api = new Api(system.url);
});
afterAll(async () => {
  expect(await limited?.stop()).toBe(0);
  expect(await system?.stop()).toEqual([]);
});

const refused = ({ status, refusal }: Answer) => [status, refusal.error];
const program = (code: string, more: Start = {}): Start => ({ code, tools: declare(["get"]), ...more });
const resume = (paused: ToolCallRequired, result: unknown) =>
  tryResume(
    api,
    paused.continuation_token,
    paused.tool_calls.map(({ id }) => ({ call_id: id, result })),
  );
/** JSON text of exactly so many bytes, with characters of two bytes. */
const ofBytes = (bytes: number) => `${"é".repeat((bytes - 2) >> 1)}${bytes % 2 === 1 ? "x" : ""}`;

describe("sizes", () => {
  test("a result may have its limit to the byte; one byte more is refused and the program stays paused", async () => {
    const paused = await startPaused(api, program("x = get()\nprint(len(x.encode()))"));
    expect(refused(await resume(paused, ofBytes(MAX_RESULT + 1)))).toEqual([422, "tool_result_too_large"]);
    const error = { call_id: "call_001", is_error: true, error_message: "x".repeat(MAX_RESULT + 1) };
    const failed = await tryResume(api, paused.continuation_token, [error]);
    expect(refused(failed)).toEqual([422, "tool_result_too_large"]);
    const answer = await resume(paused, ofBytes(MAX_RESULT));
    expect(answer.ok()).toMatchObject({ status: "completed", stdout: `${MAX_RESULT - 2}\n` });
  });

  test("all results together have a limit too", async () => {
    const paused = await startPaused(api, program("for _ in range(3): print(len(get()))"));
    const second = (await resume(paused, "x".repeat(4_999_998))).ok<ToolCallRequired>();
    const third = (await resume(second, "x".repeat(4_999_998))).ok<ToolCallRequired>();
    expect(refused(await resume(third, "x".repeat(1_999_999)))).toEqual([422, "tool_history_too_large"]);
    expect((await resume(third, "x".repeat(1_999_998))).ok()).toMatchObject({
      status: "completed",
      stdout: "4999998\n4999998\n1999998\n",
    });
  });

  test("a body beyond the limit of bodies is a 422, of a start and of a resume", async () => {
    const paused = await startPaused(api, program("print(len(get()))"));
    for (const answer of [
      await resume(paused, "x".repeat(MAX_BODY)),
      await tryStart(api, program(`#${"x".repeat(MAX_BODY)}`)),
    ]) {
      expect(refused(answer)).toEqual([422, "request_too_large"]);
    }
    expect((await resume(paused, "abc")).ok()).toMatchObject({ stdout: "3\n" });
  });

  test("a start that is too large to be kept is refused before anything runs", async () => {
    const marker = newMarker();
    const answer = await tryStart(api, program(`#${"x".repeat(MAX_STATE)}`, { args: [marker] }));
    expect(refused(answer)).toEqual([422, "state_too_large"]);
    expect(processesWith(marker)).toEqual([]);
  });

  test("a program whose calls are too large to be kept ends there, and nothing of it remains", async () => {
    const marker = newMarker();
    const code = 'for n in range(3): print(get(pad="x" * 900_000, n=n))';
    const paused = await startPaused(api, program(code, { args: [marker] }));
    const next = (await resume(paused, 1)).ok<ToolCallRequired>();
    expect(refused(await resume(next, 2))).toEqual([422, "state_too_large"]);
    await until(() => processesWith(marker).length === 0, GONE_MS);
    expect(refused(await resume(next, 2))).toEqual([400, "execution_expired"]);

    const many = 'await asyncio.gather(*[get(pad="x" * 900_000, n=n) for n in range(3)])';
    const started = await tryStart(api, program(many, { args: [marker] }));
    expect(refused(started)).toEqual([422, "state_too_large"]);
    await until(() => processesWith(marker).length === 0, GONE_MS);
    expect(await activeExecutions(system, "paused")).toBe(0);
  });
});

/** Tool calls that got no result in time. */
async function timeouts(): Promise<number> {
  const port = system.instance.ports["tool-call-server"];
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(/^svc_tool_call_timeouts_total (\d+)$/m.exec(text)?.[1]);
}

describe("time", () => {
  test("a program that is paused too long to stay in memory is run again; one paused longer still has expired", async () => {
    const marker = newMarker();
    const code = "print('one', get(n=1))\nprint('two', get(n=2))";
    // On a busy machine, programs of the tests above may have waited too long as well.
    const before = await timeouts();
    const paused = await startPaused(api, program(code, { args: [marker] }));
    const pausedMs = performance.now();
    expect(processesWith(marker)).not.toEqual([]);
    await until(() => processesWith(marker).length === 0, LIVE_MS + SOON_MS);
    const liveMs = performance.now() - pausedMs;
    expect(liveMs).toBeGreaterThan(LIVE_MS * 0.9);
    expect(await timeouts()).toBe(before + 1);
    const next = (await resume(paused, "a")).ok<ToolCallRequired>();
    expect(next).toMatchObject({ partial_stdout: "one a\n", tool_calls_made: 2 });
    expect(next.tool_calls).toMatchObject([{ id: "call_002", input: { n: 2 } }]);
    const againMs = performance.now();
    await until(async () => {
      const { status, refusal } = await tryResume(api, next.continuation_token, [
        { call_id: "call_003", result: 1 },
      ]);
      return status === 400 && refusal.error === "execution_expired";
    }, EXPIRY_MS + SOON_MS);
    expect(performance.now() - againMs).toBeGreaterThan(EXPIRY_MS * 0.9);
    expect(refused(await resume(next, "b"))).toEqual([400, "execution_expired"]);
    expect(processesWith(marker)).toEqual([]);
  });
});

describe("requests of one caller", () => {
  const windowOf = ({ headers }: Answer) =>
    ["ratelimit-limit", "ratelimit-remaining"].map((name) => Number(headers.get(name)));

  test("starts and resumes have windows of their own, and a refused resume leaves the token good", async () => {
    const at = new Api(limited.url);
    const as = (): Options => ({
      headers: { authorization: `Bearer ${signer.mint({ claims: { sub: "busy" } })}` },
    });
    const plain = await at.tryExec({ lang: "bash", code: "true" }, as());
    expect([plain.status, ...windowOf(plain)]).toEqual([200, STARTS, STARTS - 1]);
    const code = "for n in range(5): print(get(n=n))";
    const started = await tryStart(at, program(code), as());
    expect([started.status, ...windowOf(started)]).toEqual([200, STARTS, STARTS - 2]);
    const bad = await tryStart(at, {}, as());
    expect([bad.status, ...windowOf(bad)]).toEqual([400, STARTS, 0]);

    let paused = started.json<ToolCallRequired>();
    const answers = ({ tool_calls }: ToolCallRequired) => resultsOf(tool_calls, { get: ({ n }) => n });
    const forged = await tryResume(at, "forged", answers(paused), as());
    expect([forged.status, ...windowOf(forged)]).toEqual([400, RESUMES, RESUMES - 1]);
    const cancelled = await at.post("/exec/programmatic/cancel", { request_id: "none" }, as());
    expect([cancelled.status, ...windowOf(cancelled)]).toEqual([200, RESUMES, RESUMES - 2]);
    for (let left = RESUMES - 3; left >= 0; left--) {
      const answer = await tryResume(at, paused.continuation_token, answers(paused), as());
      expect([answer.status, ...windowOf(answer)]).toEqual([200, RESUMES, left]);
      paused = answer.json<ToolCallRequired>();
      expect(paused.status).toBe("tool_call_required");
    }
    const tooMany = await tryResume(at, paused.continuation_token, answers(paused), as());
    expect([...refused(tooMany), ...windowOf(tooMany)]).toEqual([429, "rate_limited", RESUMES, 0]);
    const startToo = await tryStart(at, program(code), as());
    expect([...refused(startToo), ...windowOf(startToo)]).toEqual([429, "rate_limited", STARTS, 0]);

    const waitMs = Number(tooMany.headers.get("retry-after")) * 1000;
    expect(waitMs).toBeLessThanOrEqual(WINDOW_MS);
    const options = {
      get headers() {
        return as().headers ?? {};
      },
    };
    await until(
      async () => (await tryResume(at, paused.continuation_token, answers(paused), as())).status !== 429,
      WINDOW_MS + SOON_MS,
    );
    const { answer } = await driveOn(at, paused, { get: ({ n }) => n }, options);
    expect(answer).toMatchObject({ status: "completed", stdout: "0\n1\n2\n3\n4\n" });
  });
});
