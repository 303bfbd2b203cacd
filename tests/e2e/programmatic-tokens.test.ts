/** Continuation tokens of callers with access tokens: whose they are, what they are good for, and how often. */

import type { ProgrammaticResponse, ToolCallRequired, ToolResult } from "@svc/contracts";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { slow } from "@svc/test-kit/jail/slowness";
import { type Answer, Api } from "@svc/test-kit/system/api";
import { NO_CANARY, OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import {
  declare,
  driveOn,
  type Options,
  resultsOf,
  startPaused,
  tryResume,
  tryStart,
} from "@svc/test-kit/system/programmatic";
import { activeExecutions, endedExecutions } from "@svc/test-kit/system/runner-metrics";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const RUNNING_MS = slow(20_000);
/** Long enough for a look at a program that runs, on a machine that does other work. */
const INTO_RUN_SECONDS = slow(4);
const signer = newSigner();
let system: System;
let second: SecondApi;
let api: Api;
beforeAll(async () => {
  const env = { ...OPEN_PROGRAM_LIMITS, ...NO_CANARY };
  system = await startSystem({ env });
  second = await startSecondApi(system, {
    ...env,
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
  });
  api = new Api(second.url);
});
afterAll(async () => {
  expect(await second?.stop()).toBe(0);
  expect(await system?.stop()).toEqual([]);
});

/** A caller with an access token of these claims, new for each request. */
const as = (claims: Record<string, unknown> = {}): Options => ({
  headers: { authorization: `Bearer ${signer.mint({ claims })}` },
});
const tools = { add: ({ a, b }: { a: number; b: number }) => a + b };
const TWO_ROUNDS = `print("one")
x = add(a=1, b=2)
print("two", x)
y = await asyncio.gather(add(a=x, b=1), add(a=x, b=2))
print("three", y)`;
const DONE = { status: "completed", stdout: "one\ntwo 3\nthree [4, 5]\n", tool_calls_made: 3 };

const begin = (code = TWO_ROUNDS) => startPaused(api, { code, tools: declare(["add"]) }, as());
const resume = (token: string, results: unknown, options = as()) => tryResume(api, token, results, options);
const answersTo = ({ tool_calls }: ToolCallRequired) => resultsOf(tool_calls, tools);
const refused = ({ status, refusal }: Answer) => [status, refusal.error];

describe("a token that was not given out", () => {
  test("is refused, whatever was changed, and the program is still there", async () => {
    const [paused, other] = await Promise.all([begin(), begin()]);
    const token = paused.continuation_token;
    const [version, id, round, tag, mac] = token.split(".");
    const [, otherId, , , otherMac] = other.continuation_token.split(".");
    const forged = [
      ...Array.from(
        token,
        (char, at) => `${token.slice(0, at)}${char === "A" ? "B" : "A"}${token.slice(at + 1)}`,
      ),
      `${version}.${otherId}.${round}.${tag}.${mac}`,
      `${version}.${id}.2.${tag}.${mac}`,
      `${version}.${id}.${round}.${tag}.${otherMac}`,
      `${token}.`,
      `${token}x`,
      ` ${token}`,
      `${token}\0`,
      token.slice(0, -1),
      token.toUpperCase(),
      "x",
      "svc1....",
      "A".repeat(512),
      "A".repeat(100_000),
    ];
    for (const text of forged) {
      const answer = await resume(text, answersTo(paused));
      expect([text, ...refused(answer)]).toEqual([text, 400, "invalid_continuation_token"]);
    }
    for (const value of [7, true, {}, [token], { token }]) {
      expect(refused(await resume(value as never, answersTo(paused)))).toEqual([
        400,
        "invalid_continuation_token",
      ]);
    }
    for (const program of [paused, other]) {
      expect((await driveOn(api, program, tools, as())).answer).toMatchObject(DONE);
    }
  });
});

describe("a token of somebody else", () => {
  test.each([
    ["another user", { sub: "u2" }],
    ["the same name in another tenant", { tenant_id: "t2" }],
  ])("is forbidden to %s, before and after its use", async (_who, claims) => {
    const paused = await begin();
    const results = answersTo(paused);
    const foreign = () => resume(paused.continuation_token, results, as(claims));
    expect(refused(await foreign())).toEqual([403, "forbidden"]);
    const { answer } = await driveOn(api, paused, tools, as());
    expect(answer).toMatchObject(DONE);
    expect(refused(await foreign())).toEqual([403, "forbidden"]);
  });

  test("is forbidden to the API without authentication, and nobody goes on without an access token", async () => {
    const paused = await begin();
    const results = answersTo(paused);
    const local = await tryResume(new Api(system.url), paused.continuation_token, results);
    expect(refused(local)).toEqual([403, "forbidden"]);
    expect(refused(await resume(paused.continuation_token, results, {}))).toEqual([401, "unauthorized"]);
    expect((await driveOn(api, paused, tools, as())).answer).toMatchObject(DONE);
  });

  test("is good for any access token of the same user, of whatever role and session", async () => {
    const paused = await begin();
    const others = as({ role: "ADMIN", auth_context_hash: "other", plan_id: "other" });
    expect((await driveOn(api, paused, tools, others)).answer).toMatchObject(DONE);
  });
});

describe("a token that is used again", () => {
  test("gives the same answer with the same results, in any order, for every round and after the end", async () => {
    const paused = await begin();
    const { answer, pauses } = await driveOn(api, paused, tools, as());
    expect(answer).toMatchObject(DONE);
    const before = await endedExecutions(system, "python");
    const [first, last] = pauses as [ToolCallRequired, ToolCallRequired];
    for (const [pause, next] of [
      [first, last],
      [last, answer],
    ] as const) {
      const results = answersTo(pause);
      const spelled = results.map(({ call_id, result }) => ({
        error_message: null,
        is_error: false,
        result,
        call_id,
        more: 1,
      }));
      for (const again of [results, [...results].reverse(), spelled]) {
        expect((await resume(pause.continuation_token, again)).ok()).toEqual(next);
      }
    }
    expect(await endedExecutions(system, "python")).toBe(before);
  });

  test("gives many at once one answer, and the program runs once", async () => {
    const paused = await begin(`import time
x = add(a=1, b=2)
time.sleep(1)
print("two", x)
print(add(a=x, b=x))`);
    const before = await endedExecutions(system, "python");
    const all = await Promise.all(
      Array.from({ length: 12 }, () => resume(paused.continuation_token, answersTo(paused))),
    );
    const [next, ...others] = all.map((answer) => answer.ok<ToolCallRequired>());
    for (const other of others) expect(other).toEqual(next);
    expect(next).toMatchObject({
      status: "tool_call_required",
      partial_stdout: "two 3\n",
      tool_calls_made: 2,
    });
    const ends = await Promise.all(
      Array.from({ length: 12 }, () =>
        resume((next as ToolCallRequired).continuation_token, answersTo(next as ToolCallRequired)),
      ),
    );
    for (const end of ends) expect(end.ok()).toMatchObject({ status: "completed", stdout: "two 3\n6\n" });
    expect(await endedExecutions(system, "python")).toBe(before + 1);
  });

  test("is refused with other results: in flight, afterwards, and after the end", async () => {
    const paused = await begin(`import time
x = add(a=1, b=2)
time.sleep(${INTO_RUN_SECONDS})
print(add(a=x, b=x))`);
    const [id] = paused.tool_calls.map((call) => call.id);
    const others: ToolResult[][] = [
      [{ call_id: id as string, result: 4 }],
      [{ call_id: id as string, result: "3" }],
      [{ call_id: id as string }],
      [{ call_id: id as string, result: 3, is_error: true }],
      [{ call_id: "call_002", result: 3 }],
    ];
    const conflicts = async () => {
      for (const results of others) {
        expect(refused(await resume(paused.continuation_token, results))).toEqual([
          409,
          "continuation_conflict",
        ]);
      }
    };
    const flying = resume(paused.continuation_token, answersTo(paused));
    flying.catch(() => undefined);
    // Whichever comes first is taken in.
    await until(async () => (await activeExecutions(system, "paused")) === 0, RUNNING_MS);
    await conflicts();
    const next = (await flying).ok<ProgrammaticResponse>();
    await conflicts();
    expect((await driveOn(api, next, tools, as())).answer).toMatchObject({ stdout: "6\n" });
    await conflicts();
  });
});

describe("results", () => {
  test("may be sent for some of the calls: the others come again under their ids", async () => {
    const paused = await begin(`async def twice(n):
    return await add(a=await add(a=n, b=0), b=1000)
print(await asyncio.gather(*[twice(n) for n in range(3)]))`);
    expect(paused.tool_calls.map(({ id, input }) => [id, input])).toEqual([
      ["call_001", { a: 0, b: 0 }],
      ["call_002", { a: 1, b: 0 }],
      ["call_003", { a: 2, b: 0 }],
    ]);
    const some = [{ call_id: "call_002", result: 1 }];
    const next = (await resume(paused.continuation_token, some)).ok<ToolCallRequired>();
    expect(next.continuation_token).not.toBe(paused.continuation_token);
    expect(next.tool_calls.map(({ id, input }) => [id, input])).toEqual([
      ["call_001", { a: 0, b: 0 }],
      ["call_003", { a: 2, b: 0 }],
      ["call_004", { a: 1, b: 1000 }],
    ]);
    expect(next.tool_calls_made).toBe(4);
    expect((await resume(paused.continuation_token, some)).ok()).toEqual(next);
    // Answered already, and with the token of the pause in which it was not.
    const late = await resume(next.continuation_token, [
      ...answersTo(next),
      { call_id: "call_002", result: 1 },
    ]);
    expect(refused(late)).toEqual([400, "invalid_tool_results"]);
    expect((await driveOn(api, next, tools, as())).answer).toMatchObject({ stdout: "[1000, 1001, 1002]\n" });
  });

  test("that are none, too many, or not for a pending call are refused by name; the token stays good", async () => {
    const paused = await begin();
    const one = { call_id: "call_001", result: 3 };
    for (const results of [
      undefined,
      null,
      [],
      {},
      "x",
      [null],
      [7],
      [{}],
      [{ result: 3 }],
      [{ call_id: 1, result: 3 }],
      [{ ...one, is_error: "no" }],
      [{ ...one, error_message: 7 }],
      [one, one],
      [one, { call_id: "call_002", result: 1 }],
      [{ call_id: "", result: 3 }],
      [{ call_id: "__proto__", result: 3 }],
      Array.from({ length: 201 }, (_, at) => ({ call_id: `call_${at}`, result: 0 })),
    ]) {
      const answer = await resume(paused.continuation_token, results);
      expect([JSON.stringify(results), ...refused(answer)]).toEqual([
        JSON.stringify(results),
        400,
        "invalid_tool_results",
      ]);
      expect(answer.refusal.details?.[0]?.path).toMatch(/^tool_results/);
    }
    expect((await driveOn(api, paused, tools, as())).answer).toMatchObject(DONE);
  });

  test("go to nobody when the body has no token: it is a start", async () => {
    for (const token of ["", null, undefined]) {
      const answer = await tryStart(api, { continuation_token: token, tool_results: [] }, as());
      expect(refused(answer)).toEqual([400, "invalid_request"]);
    }
  });
});
