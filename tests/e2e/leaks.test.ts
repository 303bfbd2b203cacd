/** A few hundred executions of all kinds leave nothing: the system holds afterwards what it held before. */
import type { FileRef } from "@svc/contracts";
import { Api, output } from "@svc/test-kit/system/api";
import { STEADY_POOL, settledHoldings, untilHeldAsBefore } from "@svc/test-kit/system/holdings";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

const EXECUTIONS = 200;
const CONCURRENCY = 8;
/** A pool of connections may be fuller than before by a few, but not by one for each request. */
const POOLED = 2 * CONCURRENCY;
let system: System;
let api: Api;

beforeAll(async () => {
  system = await startSystem({ env: { ...OPEN_LIMITS, ...STEADY_POOL, SANDBOX_MAX_CONCURRENT_JOBS: "8" } });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const KINDS: ((input: FileRef, at: number) => Promise<void>)[] = [
  async (_input, at) => {
    const answer = await api.exec({ lang: "py", code: `print(${at} * 2)` });
    expect(answer).toMatchObject({ stdout: `${at * 2}\n`, code: 0, status: null });
  },
  async (input, at) => {
    const code = `cat input.txt; echo ${at} > made.txt; mkdir -p a/b; ln -s / link`;
    const answer = await api.exec({ lang: "bash", code, files: [input] });
    expect(answer.stdout).toBe("input");
    expect((await api.bytes(output(answer, "made.txt"))).toString()).toBe(`${at}\n`);
  },
  async () => {
    const code = "(setsid sleep 100 &) ; sleep 100 & sleep 100";
    expect(await api.exec({ lang: "bash", code, run_timeout: 300 })).toMatchObject({ status: "TO" });
  },
  async () => {
    expect(await api.exec({ lang: "py", code: "import os; os.abort()" })).toMatchObject({
      signal: "SIGABRT",
    });
  },
  async () => {
    expect(await api.exec({ lang: "js", code: "console.log(1); process.exit(3)" })).toMatchObject({
      code: 3,
    });
  },
  async () => {
    const client = new AbortController();
    const call = api.exec({ lang: "bash", code: "sleep 100" }, { signal: client.signal });
    setTimeout(() => client.abort(), 100);
    await expect(call).rejects.toThrow();
  },
  async () => {
    expect((await api.tryExec({ lang: "bash", code: "true", files: [{ name: "x" }] })).status).toBe(400);
  },
  async () => {
    const code = "import sys\nsys.stdout.write('x' * 10000000)";
    expect(await api.exec({ lang: "py", code })).toMatchObject({ status: "OL" });
  },
];

async function load(input: FileRef, executions: number): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < executions) {
      const at = next++;
      await KINDS[at % KINDS.length]?.(input, at);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, lane));
}

test("after 200 executions everything is as it was after the first few", async () => {
  const input = await api.stage("input.txt", "input");
  await load(input, 4 * CONCURRENCY);
  const before = await settledHoldings(system);
  await load(input, EXECUTIONS);
  await untilHeldAsBefore(system, before, POOLED);
});
