/** Programs with tools while parts of the system are killed: the next resume goes on, and all comes out right. */

import { setTimeout as sleep } from "node:timers/promises";
import type { ProgrammaticResponse, ToolCallRequired } from "@svc/contracts";
import { killProcess } from "@svc/test-kit/jail/host";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { IN_GUESTS, SANDBOX } from "@svc/test-kit/system/guests";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import {
  declare,
  driveOn,
  resultsOf,
  served,
  startPaused,
  tryResume,
} from "@svc/test-kit/system/programmatic";
import { activeExecutions, warmJails, warmStarts } from "@svc/test-kit/system/runner-metrics";
import { startSecondApi } from "@svc/test-kit/system/second-api";
import type { System } from "@svc/test-kit/system/system";
import { describe, expect, test } from "vitest";
import { useSystem } from "./support/use-system.ts";

const HEALED_MS = slow(30_000);
const RUNNING_MS = slow(20_000);
/** Well into the time for which the programs run. */
const INTO_RUN_MS = 300;
const ENV = { ...OPEN_PROGRAM_LIMITS, ...ONE_BY_ONE };
/** What runs programs. */
/** With it programs end. */
const HOLDER = IN_GUESTS ? "launcher" : "jaild";
const EVERYTHING = [
  "redis",
  "api",
  "worker",
  ...SANDBOX,
  "file-server",
  "tool-call-server",
  "egress-gateway",
] as const;
type Component = Parameters<System["pid"]>[0];

let system: System;
let api: Api;
useSystem(ENV, (made) => {
  ({ system, api } = made);
});

/** Both pause twice, for three calls and for one; in between they run for a while. */
const PROGRAMS = {
  python: `import time
print("one")
many = await asyncio.gather(*[add(a=n, b=100) for n in range(3)])
open("many.txt", "w").write(repr(many))
time.sleep(1.5)
print("two", many)
last = add(a=sum(many), b=open("many.txt").read().count(","))
print("three", last)`,
  bash: `echo one
for n in 0 1 2; do add "{\\"a\\":$n,\\"b\\":100}" > "$n" & done; wait
many="[$(cat 0), $(cat 1), $(cat 2)]"; rm 0 1 2
echo "$many" > many.txt
sleep 1.5
echo "two $many"
last=$(add '{"a":303,"b":2}')
echo "three $last"`,
};
type Language = keyof typeof PROGRAMS;
const LANGUAGES = Object.keys(PROGRAMS) as Language[];

const tools = { add: ({ a, b }: { a: number; b: number }) => a + b };
const start = (language: Language, at = api) =>
  startPaused(at, { code: PROGRAMS[language], language, tools: declare(["add"]) });

function expectRight(answer: ProgrammaticResponse): void {
  expect(answer).toMatchObject({
    status: "completed",
    stdout: "one\ntwo [100, 101, 102]\nthree 305\n",
    stderr: "",
    code: 0,
    tool_calls_made: 4,
    files: [{ name: "many.txt" }],
  });
}

/** Kills these and waits until each runs again under another pid. */
async function killAll(components: readonly Component[]): Promise<void> {
  const before = components.map((name) => system.pid(name));
  for (const pid of before) killProcess(pid);
  await until(() => components.every((name, at) => isAnew(name, before[at])), HEALED_MS);
}

function isAnew(name: Component, before: number | undefined): boolean {
  try {
    return system.pid(name) !== before;
  } catch {
    return false;
  }
}

/** Resumes all at once; settles when none is paused any more. Each answer comes by itself. */
async function resumeAll(paused: readonly ToolCallRequired[], at = api) {
  const before = await activeExecutions(system, "paused");
  const answers = paused.map(({ continuation_token, tool_calls }) => {
    const answer = served(() => tryResume(at, continuation_token, resultsOf(tool_calls, tools)));
    answer.catch(() => undefined);
    return answer;
  });
  await until(async () => (await activeExecutions(system, "paused")) <= before - paused.length, RUNNING_MS);
  await sleep(INTO_RUN_MS);
  return answers;
}

const startBoth = (at = api) => Promise.all(LANGUAGES.map((language) => start(language, at)));
const isServing = () =>
  fetch(`${system.url}/health`).then(
    ({ ok }) => ok,
    () => false,
  );

describe("while programs are paused", () => {
  test.each([
    [HOLDER, [HOLDER]],
    ["redis", ["redis"]],
    ["everything", EVERYTHING],
  ] as const)("kill -9 of %s: they end as if nothing had been", async (_what, components) => {
    const paused = await startBoth();
    await killAll(components);
    await until(isServing, HEALED_MS);
    for (const driven of await Promise.all(paused.map((pause) => driveOn(api, pause, tools)))) {
      expectRight(driven.answer);
      expect(driven.batches).toEqual([["add", "add", "add"], ["add"]]);
    }
  });

  test("kill -9 of the API that started them: another one goes on with them", async () => {
    const second = await startSecondApi(system, ENV);
    const paused = await startBoth(new Api(second.url));
    await second.kill();
    for (const pause of paused) expectRight((await driveOn(api, pause, tools)).answer);
  });
});

describe("a resume that comes while no worker lives", () => {
  test("waits for the next one, and the frozen program goes on", async () => {
    const paused = await startBoth();
    const frozen = await activeExecutions(system, "paused");
    killProcess(system.pid("worker"));
    const ended = await Promise.all(paused.map((pause) => driveOn(api, pause, tools)));
    for (const { answer } of ended) expectRight(answer);
    expect(await activeExecutions(system, "paused")).toBe(frozen - paused.length);
  });
});

describe("a Python program with tools", () => {
  test("starts warm, and has the hash seed of that process when it is run again from the top", async () => {
    if (!IN_GUESTS) await until(async () => (await warmJails(system, "python-standard")) > 0, HEALED_MS);
    const before = await warmStarts(system);
    const code = 'print(hash("a"))\nadd(a=1, b=2)\nprint(hash("a"))';
    const paused = await startPaused(api, { code, language: "python", tools: declare(["add"]) });
    // The metrics of a guest's runner stay in it.
    if (!IN_GUESTS) expect(await warmStarts(system)).toBeGreaterThan(before);
    expect(paused.partial_stdout).toMatch(/^-?\d+\n$/);
    await killAll(SANDBOX);
    await until(isServing, HEALED_MS);
    expect((await driveOn(api, paused, tools)).answer).toMatchObject({
      status: "completed",
      stdout: `${paused.partial_stdout}${paused.partial_stdout}`,
    });
  });
});

describe("while programs run", () => {
  test.each(["worker", ...SANDBOX, "tool-call-server", "egress-gateway", "redis"] as const)(
    "kill -9 of the %s: the same resume ends as if nothing had been",
    async (component) => {
      const answers = await resumeAll(await startBoth());
      expect(await activeExecutions(system, "running")).toBeGreaterThanOrEqual(LANGUAGES.length);
      await killAll([component]);
      for (const answer of answers) expectRight((await driveOn(api, await answer, tools)).answer);
    },
  );

  test("kill -9 of the API that resumed them: the same resume at another one gets the answer", async () => {
    const second = await startSecondApi(system, ENV);
    const paused = await startBoth();
    const lost = await resumeAll(paused, new Api(second.url));
    await second.kill();
    for (const answer of lost) await expect(answer).rejects.toThrow("fetch failed");
    for (const { answer } of await Promise.all(paused.map((pause) => driveOn(api, pause, tools)))) {
      expectRight(answer);
    }
  });
});
