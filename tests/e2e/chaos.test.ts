/** Each component is killed in the middle of running requests: every request ends, the system heals, the next one works. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ExecResponse, FileRef } from "@svc/contracts";
import { ERRORS } from "@svc/contracts";
import { killProcess } from "@svc/test-kit/jail/host";
import { slow } from "@svc/test-kit/jail/slowness";
import { type Answer, Api, type ErrorBody, output } from "@svc/test-kit/system/api";
import { SANDBOX } from "@svc/test-kit/system/guests";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

const REQUESTS = 20;
const KILL_AFTER_MS = 1200;
const HEALED_MS = slow(20_000);
const RUN_MS = slow(10_000);
/** The layers of deadlines around a run, short enough that a test sees their end. */
const DEADLINES = {
  SANDBOX_COMPILE_TIMEOUT: 5000,
  JOB_PRIME_ALLOWANCE_MS: slow(15_000),
  JOB_POSTPROCESS_ALLOWANCE_MS: slow(10_000),
  JOB_WAIT_GRACE_MS: slow(5000),
  JOB_QUEUE_WAIT_MS: slow(40_000),
};
const ANSWER_MS =
  RUN_MS +
  DEADLINES.SANDBOX_COMPILE_TIMEOUT +
  DEADLINES.JOB_PRIME_ALLOWANCE_MS +
  DEADLINES.JOB_POSTPROCESS_ALLOWANCE_MS +
  2 * DEADLINES.JOB_WAIT_GRACE_MS +
  DEADLINES.JOB_QUEUE_WAIT_MS;
/** Kills of these are bridged: no request may fail because of them. */
const BRIDGED = ["worker", ...SANDBOX, "file-server", "egress-gateway"] as const;
const ALL = ["redis", ...BRIDGED] as const;

let system: System;
let api: Api;
let input: FileRef;

beforeAll(async () => {
  const deadlines = Object.entries(DEADLINES).map(([name, value]) => [name, String(value)]);
  system = await startSystem({
    env: {
      ...OPEN_LIMITS,
      ...ONE_BY_ONE,
      SANDBOX_MAX_CONCURRENT_JOBS: "8",
      ...Object.fromEntries(deadlines),
    },
  });
  api = new Api(system.url);
  input = await api.stage("input.txt", "the input");
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

interface Ended {
  answer: Answer;
  ms: number;
}

/** A request of the mix: Python and Bash, 0.2 to 3 s, an input read at the end, an output written. */
async function sendOne(at: number): Promise<Ended> {
  const seconds = 0.2 + (2.8 * at) / (REQUESTS - 1);
  const [lang, code] =
    at % 2 === 0
      ? [
          "py",
          `import time\nopen("made.txt", "w").write("${at}")\ntime.sleep(${seconds})\nprint(open("input.txt").read())`,
        ]
      : ["bash", `printf ${at} > made.txt; sleep ${seconds}; cat input.txt; echo`];
  const began = performance.now();
  const answer = await api.tryExec({ lang, code, files: [input], run_timeout: RUN_MS });
  return { answer, ms: performance.now() - began };
}

async function isRight(answer: Answer, at: number): Promise<boolean> {
  if (answer.status !== 200) return false;
  const body = answer.json<ExecResponse>();
  expect(body).toMatchObject({ stdout: "the input\n", code: 0, status: null });
  // An output whose upload failed is told; then the answer is right, but not whole.
  if (body.artifact_delivery !== undefined) {
    expect(body.files_omitted).toEqual([{ name: "made.txt", reason: "upload_failed" }]);
    return false;
  }
  expect((await api.bytes(output(body, "made.txt"))).toString()).toBe(String(at));
  return true;
}

function expectClearError(answer: Answer): ErrorBody {
  const body = answer.refusal;
  expect(Object.keys(ERRORS)).toContain(body.error);
  expect(answer.status, body.error).toBeGreaterThanOrEqual(500);
  expect(body.message.length).toBeGreaterThan(10);
  expect(body.request_id).toBe(answer.headers.get("x-request-id"));
  expect(answer.text).not.toMatch(/127\.0\.0\.1|ECONN|\.sock|svc-copy|redis:/i);
  return body;
}

test.each(ALL)("kill -9 of %s under 20 requests", async (name) => {
  const before = system.pid(name);
  const running = Array.from({ length: REQUESTS }, (_, at) => sendOne(at));
  for (const call of running) call.catch(() => undefined);
  await sleep(KILL_AFTER_MS);
  killProcess(before);
  const killedAt = performance.now();

  await until(() => isBackAs(name, before), HEALED_MS);
  await until(
    async () => (await api.tryExec({ lang: "py", code: "print(1)", files: [input] })).status === 200,
    HEALED_MS,
  );
  const healedMs = performance.now() - killedAt;
  expect(healedMs).toBeLessThan(HEALED_MS);

  const ended = await Promise.all(running);
  const errors: string[] = [];
  let right = 0;
  for (const [at, { answer, ms }] of ended.entries()) {
    expect(ms).toBeLessThan(ANSWER_MS);
    if (await isRight(answer, at)) right++;
    else
      errors.push(
        answer.status === 200 ? "output not delivered" : `${answer.status} ${expectClearError(answer).error}`,
      );
  }
  const slowest = Math.round(Math.max(...ended.map(({ ms }) => ms)));
  console.log(
    `${name}: ${right} of ${REQUESTS} right, slowest ${slowest} ms, healed after ${Math.round(healedMs)} ms ${errors}`,
  );
  if ((BRIDGED as readonly string[]).includes(name)) expect(errors).toEqual([]);
});

/** True when the component runs again under another pid. */
function isBackAs(name: (typeof ALL)[number], before: number): boolean {
  try {
    return system.pid(name) !== before;
  } catch {
    return false;
  }
}
