/**
 * Thousands of streams: the texts of each are exactly its answer's outputs, and nothing stays behind of readers that leave.
 * STREAMS: how many; 10,000 take a quarter of an hour.
 */
import type { ExecResponse } from "@svc/contracts";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { joined, resultOf, streamed } from "@svc/test-kit/system/streams";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";
import { leaveStreams, leftOfStreams } from "../e2e/support/streams.ts";

const STREAMS = Number(process.env.STREAMS ?? 500);
const CONCURRENCY = 8;
const LEAVING = 1000;

let system: System;
beforeAll(async () => {
  system = await startSystem({
    env: { ...OPEN_LIMITS, SVC_MAX_CONCURRENT_EXECUTIONS: "0" },
  });
});
afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

/** Writes texts and bytes that are none, in both outputs, in pieces that differ from run to run. */
const inPython = (seed: number) => `import os, random, time
random.seed(${seed})
pool = b"abc\\n\\xc3\\xa9\\xf0\\x9f\\x98\\x80\\xff\\xe2\\x82\\xac"
for _ in range(random.randrange(40)):
  os.write(random.choice((1, 2)), bytes(random.choice(pool) for _ in range(random.randrange(1, 3000))))
  if random.random() < 0.1: time.sleep(0.01)`;
const inBash = (seed: number) =>
  `printf 'é%.0s' {1..${(seed % 50) + 1}}; echo err >&2; printf '\\xe2\\x82'; printf '\\xac'`;

test("the outputs of every stream are its answer's", async () => {
  let next = 0;
  const lane = async () => {
    for (let seed = next++; seed < STREAMS; seed = next++) {
      const input =
        seed % 4 === 3 ? { lang: "bash", code: inBash(seed) } : { lang: "py", code: inPython(seed) };
      const events = await streamed(system.url, input);
      const { stdout, stderr, code } = resultOf<ExecResponse>(events);
      expect([code, joined(events, "stdout"), joined(events, "stderr")]).toEqual([0, stdout, stderr]);
      expect(events[0]?.event).toBe("started");
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, lane));
}, 3_600_000);

test("a thousand streams whose readers leave leave no keys and no subscriptions", async () => {
  const left = leftOfStreams(system.instance);
  await Promise.all(Array.from({ length: 4 }, () => leaveStreams(system.url, LEAVING / 4)));
  await expect.poll(left.names, { timeout: 60_000 }).toEqual([]);
  left.close();
}, 600_000);
