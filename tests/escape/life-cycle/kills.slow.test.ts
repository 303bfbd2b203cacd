/**
 * Each component is told to end, and is killed, while hostile programs run: every request ends as it must or with a clear
 * error, the component comes back, and nothing of it all stays.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { identify, signalProcess } from "@svc/cli/system/process";
import { ERRORS, type ExecResponse } from "@svc/contracts";
import { childrenOf, descendants, killProcess } from "@svc/test-kit/jail/host";
import { slow } from "@svc/test-kit/jail/slowness";
import { type Answer, Api, type ExecInput } from "@svc/test-kit/system/api";
import { IN_GUESTS, SANDBOX } from "@svc/test-kit/system/guests";
import {
  type Holdings,
  STEADY_POOL,
  settledHoldings,
  untilHeldAsBefore,
} from "@svc/test-kit/system/holdings";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const BACK_MS = slow(30_000);
const ANSWER_MS = slow(110_000);
const POOLED = 32;
/** The time of a stopping component and the layers of deadlines around a run, short enough that a test sees their end. */
const DEADLINES = {
  SHUTDOWN_GRACE_MS: `${slow(5000)}`,
  SANDBOX_COMPILE_TIMEOUT: `${slow(5000)}`,
  JOB_PRIME_ALLOWANCE_MS: `${slow(15_000)}`,
  JOB_POSTPROCESS_ALLOWANCE_MS: `${slow(10_000)}`,
  JOB_WAIT_GRACE_MS: `${slow(5000)}`,
  JOB_QUEUE_WAIT_MS: `${slow(40_000)}`,
};
const COMPONENTS = [
  "redis",
  ...SANDBOX,
  "worker",
  "api",
  "file-server",
  "egress-gateway",
  "tool-call-server",
] as const;
type Component = (typeof COMPONENTS)[number];

/** What runs meanwhile, and how it ends when nobody is killed. */
const LOAD: [ExecInput, Partial<ExecResponse>][] = [
  [{ lang: "bash", code: ":(){ :|:& };: 2> /dev/null; sleep 60", run_timeout: 1500 }, { status: "TO" }],
  [
    {
      lang: "py",
      code: "import time\ntime.sleep(0.7)\nkept = []\nwhile True: kept.append(b'x' * (32 << 20))",
    },
    { status: "ML" },
  ],
  [{ lang: "bash", code: "sleep 0.8; yes" }, { status: "OL" }],
  [
    { lang: "py", code: "import time\ntime.sleep(1)\nprint('whole')" },
    { status: null, stdout: "whole\n" },
  ],
  [
    { lang: "bash", code: "(setsid sleep 90 &); sleep 1; echo x > made; cat made" },
    { status: null, stdout: "x\n" },
  ],
  [{ lang: "bash", code: "sleep 90 & kill -STOP -1; kill -STOP $$", run_timeout: 1200 }, { status: "TO" }],
];

let system: System;
let api: Api;
let idle: Holdings;
beforeAll(async () => {
  system = await startSystem({
    env: { ...OPEN_LIMITS, ...ONE_BY_ONE, ...STEADY_POOL, SANDBOX_MAX_CONCURRENT_JOBS: "8", ...DEADLINES },
  });
  api = new Api(system.url);
  await Promise.all([...LOAD, ...LOAD].map(([program]) => api.exec(program)));
  idle = await settledHoldings(system);
});
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

const pidOf = (name: Component) => {
  try {
    return system.pid(name);
  } catch {
    return undefined;
  }
};

function expectRight(answer: Answer, expected: Partial<ExecResponse>): void {
  if (answer.status === 200) {
    expect(answer.json()).toMatchObject(expected);
    return;
  }
  const { error } = answer.refusal;
  expect(Object.keys(ERRORS)).toContain(error);
  expect(answer.status, error).toBeGreaterThanOrEqual(500);
  expect(answer.text).not.toMatch(/127\.0\.0\.1|ECONN|\.sock|svc-copy|redis:/i);
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}

async function untilWell(): Promise<void> {
  const programs = [
    { lang: "py", code: "print('well')" },
    { lang: "bash", code: "echo well" },
  ];
  await until(async () => {
    const answers = await Promise.all(programs.map((program) => api.tryExec(program).catch(() => undefined)));
    return answers.every(
      (answer) => answer?.status === 200 && answer.json<ExecResponse>().stdout === "well\n",
    );
  }, BACK_MS);
}

describe.each(["SIGTERM", "SIGKILL"] as const)("%s", (signal) => {
  test.each(COMPONENTS)("of %s, while hostile programs run", async (name) => {
    const victim = identify(pidOf(name) ?? 0);
    if (victim === undefined) throw new Error(`${name} does not run`);
    let lost = 0;
    const began = performance.now();
    const running = LOAD.map(async ([program, expected]) => {
      const answer = await api.tryExec({ run_timeout: slow(10_000), ...program }).catch(() => undefined);
      if (answer === undefined) lost++;
      else expectRight(answer, expected);
    });
    await sleep(600);
    signalProcess(victim, signal);
    await until(() => {
      const now = pidOf(name);
      return now !== undefined && now !== victim.pid;
    }, BACK_MS);
    await Promise.all(running);
    expect(performance.now() - began).toBeLessThan(ANSWER_MS);
    // Only a caller of the killed one itself has no answer.
    if (name !== "api") expect(lost).toBe(0);
    await untilWell();
    await untilHeldAsBefore(system, idle, POOLED);
  });
});

// Jails in microVMs cannot be reached from outside.
describe.skipIf(IN_GUESTS)("a process of the jail that is killed from outside", () => {
  const running = async (marker: string) => {
    const code = "import time\ntime.sleep(1.5)\nprint('whole')";
    const call = api.tryExec({ lang: "py", code, args: [marker], run_timeout: 10_000 });
    call.catch(() => undefined);
    await until(() => processesWith(marker).length > 0, BACK_MS);
    const jaild = system.pid("jaild");
    const keeper = childrenOf(jaild).find((pid) =>
      descendants(pid).some((below) => commandOf(below).includes(marker)),
    );
    return { call, keeper };
  };
  test.each([
    ["the keeper", 0],
    ["pid 1 of the jail", 1],
  ])("%s: the run is made again, and its slot comes back", async (_name, depth) => {
    const { call, keeper } = await running(newMarker());
    killProcess(depth === 0 ? keeper : childrenOf(keeper)[0]);
    expect((await call).ok<ExecResponse>()).toMatchObject({ stdout: "whole\n", code: 0 });
    await untilHeldAsBefore(system, idle, POOLED);
  });

  test("the program: it was killed by a signal", async () => {
    const { call, keeper } = await running(newMarker());
    killProcess(childrenOf(childrenOf(keeper)[0])[0]);
    expect((await call).ok<ExecResponse>()).toMatchObject({ stdout: "", status: "SG", signal: "SIGKILL" });
    await untilHeldAsBefore(system, idle, POOLED);
  });
});
