/**
 * Five thousand executions, good and hostile, one mixture: all end as they must, and afterwards nothing is held that was
 * not held before, and the memory of our processes is what it was after the first thousand.
 */

import { memoryMiB } from "@svc/test-kit/system/consumption";
import { collectGarbage } from "@svc/test-kit/system/garbage";
import { settledHoldings, untilHeldAsBefore } from "@svc/test-kit/system/holdings";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { componentPids } from "../support/component-pids.ts";
import { mixture, pick, randomFrom } from "../support/mixture.ts";
import { attacker, running, system } from "../support/running.ts";

const EXECUTIONS = 5000;
const FIRST = 1000;
const LANES = 8;
const SEED = 20_260_101;
/** Slack where memory is given back in pages. */
const FLAT = { factor: 1.15, mebibytes: 48 };
/** Connections that are kept for a next request. */
const POOLED = 2 * LANES;
let redis: Redis;

beforeAll(() => {
  redis = new Redis(system.instance.redisSocket);
});
afterAll(() => redis?.disconnect());

/** Ended jobs are kept for a while; the queue removes them when others end. */
const ENDED_JOB = /^bull:[a-z-]+:[\w-]{21,}$/;

/** Keys that would stay for ever. */
async function lastingKeys(): Promise<string[]> {
  const lasting = new Set<string>();
  for await (const keys of redis.scanStream({ count: 1000 })) {
    for (const key of keys as string[]) {
      if (!ENDED_JOB.test(key) && (await redis.pttl(key)) === -1) lasting.add(key);
    }
  }
  return [...lasting].sort();
}

async function memory(): Promise<number> {
  const pids = componentPids(system, running.tokenApiPid);
  await collectGarbage(pids);
  return memoryMiB(pids);
}

test("5,000 mixed executions leave everything as it was", async () => {
  const random = randomFrom(SEED);
  const kinds = mixture(await attacker.stage("input.txt", "input"));
  const counts = new Map<string, number>();
  const run = async (executions: number) => {
    let left = executions;
    const lane = async () => {
      while (left-- > 0) {
        const kind = pick(kinds, random);
        counts.set(kind.name, (counts.get(kind.name) ?? 0) + 1);
        await kind.run(attacker, random);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  };
  const began = performance.now();
  await run(FIRST);
  const held = await settledHoldings(system);
  const first = { memory: await memory(), keys: await lastingKeys() };
  await run(EXECUTIONS - FIRST);
  await untilHeldAsBefore(system, held, POOLED);
  const last = { memory: await memory(), keys: await lastingKeys() };
  const seconds = (performance.now() - began) / 1000;
  console.log(
    `${EXECUTIONS} executions in ${seconds.toFixed(0)} s; memory of the components ${running.idle.memoryMiB.toFixed(0)} MiB idle,`,
    `${first.memory.toFixed(0)} after ${FIRST}, ${last.memory.toFixed(0)} at the end; ${JSON.stringify(Object.fromEntries(counts))}`,
  );
  expect([...counts.keys()].toSorted()).toEqual(kinds.map(({ name }) => name).toSorted());
  expect(last.keys).toEqual(first.keys);
  expect(last.memory).toBeLessThan(first.memory * FLAT.factor + FLAT.mebibytes);
  expect({ ...held, descriptors: 0 }).toEqual({ ...running.idle.holdings, descriptors: 0 });
}, 900_000);
