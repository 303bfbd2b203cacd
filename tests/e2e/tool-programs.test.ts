/** Programs with tools through the whole system: paused, resumed, lost in every way, and finished all the same. */

import { setTimeout as sleep } from "node:timers/promises";
import { killProcess } from "@svc/test-kit/jail/host";
import { slow } from "@svc/test-kit/jail/slowness";
import { IN_GUESTS, RUNNER } from "@svc/test-kit/system/guests";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const HEALED_MS = slow(30_000);

interface Answer {
  status: string;
  session_id: string;
  continuation_token: string;
  tool_calls: { id: string; name: string; input: { a: number; b: number } }[];
  partial_stdout: string;
  stdout: string;
  stderr: string;
  files: { name: string }[];
  tool_calls_made: number;
  error_type?: string;
}

let system: System;
beforeAll(async () => {
  system = await startSystem({ env: { ...OPEN_PROGRAM_LIMITS, ...ONE_BY_ONE } });
});
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

const tools = [{ name: "add", parameters: { type: "object", properties: { a: {}, b: {} } } }];

/** A 503 says that the same request may be sent again: nothing is lost by it. */
async function post(body: object): Promise<Answer> {
  for (const began = performance.now(); ; await sleep(200)) {
    const response = await fetch(`${system.url}/exec/programmatic`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as Answer;
    if (response.status === 503 && performance.now() - began < HEALED_MS) continue;
    expect(response.status, JSON.stringify(answer)).toBe(200);
    return answer;
  }
}
const start = (code: string, language: string) => post({ code, language, tools });
const resume = ({ continuation_token, tool_calls }: Answer) =>
  post({
    continuation_token,
    tool_results: tool_calls.map(({ id, input }) => ({ call_id: id, result: input.a + input.b })),
  });

const PROGRAMS = {
  python: `print("begin")
total = 0
for i in range(4):
    total = await add(a=total, b=i)
many = await asyncio.gather(*[add(a=i, b=total) for i in range(10)])
open("sum.txt", "w").write(str(sum(many)))
print(total, sum(many))`,
  bash: `echo begin
total=0
for i in 0 1 2 3; do total=$(add "{\\"a\\":$total,\\"b\\":$i}"); done
for i in 0 1 2 3 4 5 6 7 8 9; do add "{\\"a\\":$i,\\"b\\":$total}" > "out$i" & done
wait
sum=0; for i in 0 1 2 3 4 5 6 7 8 9; do sum=$((sum + $(cat "out$i"))); rm "out$i"; done
echo -n "$sum" > sum.txt
echo "$total $sum"`,
};

/** Drives a program to its end; `between` happens while it is paused for the given time. */
async function drive(language: keyof typeof PROGRAMS, between = async (_pause: number) => {}) {
  let answer = await start(PROGRAMS[language], language);
  let pauses = 0;
  for (; answer.status === "tool_call_required"; pauses++) {
    await between(pauses + 1);
    answer = await resume(answer);
  }
  return { answer, pauses };
}

const FINISHED = {
  status: "completed",
  stdout: "begin\n6 105\n",
  stderr: "",
  tool_calls_made: 14,
};

/** Four calls, and ten at once: where a guest is slow, these may come in more than one batch. */
function expectPauses(pauses: number): void {
  if (IN_GUESTS) expect(pauses).toBeGreaterThanOrEqual(5);
  else expect(pauses).toBe(5);
}

/** True when the component runs again under another pid. */
function isAnew(name: Parameters<System["pid"]>[0], before: number): boolean {
  try {
    return system.pid(name) !== before;
  } catch {
    return false;
  }
}

describe.each(["python", "bash"] as const)("a program in %s", (language) => {
  test("pauses for its calls and ends with its output and its files, once", async () => {
    const { answer, pauses } = await drive(language);
    expect(answer).toMatchObject(FINISHED);
    expect(answer.files.map(({ name }) => name)).toEqual(["sum.txt"]);
    expectPauses(pauses);
  });

  test.each([RUNNER, "worker", "tool-call-server", "egress-gateway"] as const)(
    "ends alike when the %s is killed while it is paused",
    async (component) => {
      const { answer, pauses } = await drive(language, async (pause) => {
        if (pause !== 3) return;
        const before = system.pid(component);
        killProcess(before);
        await until(() => isAnew(component, before), HEALED_MS);
      });
      expect(answer).toMatchObject(FINISHED);
      expect(answer.files.map(({ name }) => name)).toEqual(["sum.txt"]);
      expectPauses(pauses);
    },
  );
});
