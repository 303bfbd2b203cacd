/** Runs that follow each other have grants that were made before they came: nobody notices, and none stays behind. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "@svc/service-kit";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api, downloadPath, output } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openStore } from "./support/store.ts";

const RUNS = 40;
const ENDED_MS = slow(20_000);
const RECONNECTED_MS = 500;
let system: System;
let api: Api;
let redis: Redis;
beforeAll(async () => {
  system = await startSystem({
    env: { ...OPEN_LIMITS, PYTHON_CONCURRENCY: "4", JOB_QUEUE_WAIT_MS: `${slow(60_000)}` },
  });
  api = new Api(system.url);
  redis = openStore(system);
});
afterAll(async () => {
  redis?.disconnect();
  expect(await system?.stop()).toEqual([]);
});

const writing = (text: string) => ({ lang: "py", code: `open("out.txt", "w").write("${text}")` });

interface GrantRecord {
  grant_id: string;
  status: "active" | "revoked";
  output_session_id: string;
}

async function records(): Promise<GrantRecord[]> {
  const keys = await redis.keys("svc:egress:grant:*");
  const texts = keys.length > 0 ? await redis.mget(keys) : [];
  return texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as GrantRecord]));
}

async function active(): Promise<GrantRecord[]> {
  return (await records()).filter(({ status }) => status === "active");
}

/** Runs one after the other until grants of the next ones are there, and none of these runs'. */
async function runUntilReady(): Promise<GrantRecord[]> {
  const ended = new Set<string>();
  for (let run = 0; run < RUNS; run++)
    ended.add((await api.exec({ lang: "py", code: "print(1)" })).session_id);
  let ready: GrantRecord[] = [];
  await until(async () => {
    ready = await active();
    return ready.length > 0 && ready.every(({ output_session_id }) => !ended.has(output_session_id));
  }, ENDED_MS);
  return ready;
}

test("each run has a session and files of its own", async () => {
  const answers = [];
  for (let run = 0; run < RUNS; run++) answers.push(await api.exec(writing(`run ${run}`)));
  answers.push(
    ...(await Promise.all(Array.from({ length: RUNS }, (_, run) => api.exec(writing(`run ${RUNS + run}`))))),
  );
  expect(new Set(answers.map(({ session_id }) => session_id)).size).toBe(2 * RUNS);
  for (const [run, answer] of answers.entries()) {
    const file = output(answer, "out.txt");
    expect(file.storage_session_id).toBe(answer.session_id);
    expect((await api.bytes(file)).toString()).toBe(`run ${run}`);
    expect((await api.send("GET", downloadPath(file))).status).toBe(200);
  }
});

test("a run takes a prefetched grant, and an unused one is revoked", async () => {
  const ready = new Set((await runUntilReady()).map(({ output_session_id }) => output_session_id));
  const { session_id } = await api.exec(writing("ahead"));
  expect(ready).toContain(session_id);
  await until(async () => (await active()).length === 0, ENDED_MS);
});

test("what the store may have lost with its connections is not used", async () => {
  const ready = await runUntilReady();
  await redis.del(ready.map(({ grant_id }) => `svc:egress:grant:${grant_id}`));
  await redis.call("CLIENT", "KILL", "TYPE", "normal");
  await sleep(RECONNECTED_MS);
  const answer = await api.exec(writing("after the loss"));
  expect(answer).not.toHaveProperty("artifact_delivery");
  expect((await api.bytes(output(answer, "out.txt"))).toString()).toBe("after the loss");
});
