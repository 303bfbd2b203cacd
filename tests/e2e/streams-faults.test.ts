/**
 * What happens to streams when a component is killed in the middle: each ends with the whole answer and exactly its outputs, or with an
 * error. And nothing stays behind of streams whose readers left: a thousand of them are in tests/slow/streams.slow.test.ts.
 */

import type { ExecResponse } from "@svc/contracts";
import { killProcess } from "@svc/test-kit/jail/host";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { RUNNER } from "@svc/test-kit/system/guests";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { joined, openStream, streamed } from "@svc/test-kit/system/streams";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";
import { leaveStreams, leftOfStreams } from "./support/streams.ts";

const HEALED_MS = slow(20_000);
let system: System;
let api: Api;
beforeAll(async () => {
  const env = { ...OPEN_LIMITS, ...ONE_BY_ONE, SVC_MAX_CONCURRENT_EXECUTIONS: "0" };
  system = await startSystem({ env });
  api = new Api(system.url);
});
afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const steady = 'import time\nfor at in range(20):\n  print("line", at)\n  time.sleep(0.1)';
const changing = "import os, time\nfor at in range(20):\n  print(os.urandom(4).hex())\n  time.sleep(0.1)";

test.each([
  ["worker", steady],
  ["worker", changing],
  [RUNNER, steady],
  [RUNNER, changing],
  ["redis", steady],
] as const)("kill -9 of the %s", async (name, code) => {
  const answer = await openStream(system.url, "/exec", { lang: "py", code });
  await answer.until(({ event }) => event === "stdout");
  killProcess(system.pid(name));
  const events = await answer.all();
  const last = events.at(-1);
  if (last?.event === "result") {
    const result: ExecResponse = last.data;
    expect([joined(events, "stdout"), joined(events, "stderr")]).toEqual([result.stdout, result.stderr]);
    expect(result.stdout.split("\n")).toHaveLength(21);
  } else {
    expect(last).toMatchObject({
      event: "error",
      data: { error: expect.any(String), request_id: expect.any(String) },
    });
  }
  await until(async () => (await api.tryExec({ lang: "py", code: "" })).status === 200, HEALED_MS);
  expect(joined(await streamed(system.url, { lang: "py", code: "print(1)" }), "stdout")).toBe("1\n");
});

test("streams whose readers leave leave no keys and no subscriptions", async () => {
  const left = leftOfStreams(system.instance);
  await Promise.all(Array.from({ length: 4 }, () => leaveStreams(system.url, 25)));
  await expect.poll(left.names, { timeout: slow(60_000) }).toEqual([]);
  left.close();
});
