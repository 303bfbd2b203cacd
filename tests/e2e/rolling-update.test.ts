/** Every process is replaced in the order of docs/kubernetes.md, two replicas of each, under load: callers see nothing of it. */
import { randomUUID } from "node:crypto";
import type { ToolCallRequired } from "@svc/contracts";
import { until } from "@svc/test-kit/system/processes";
import { declare, driveOn, startPaused } from "@svc/test-kit/system/programmatic";
import { afterAll, beforeAll, expect, test } from "vitest";
import { redisHolds } from "../chaos/run.ts";
import { LONGEST_MS } from "../chaos/system.ts";
import { isIdle } from "./support/by-hand.ts";
import { Deployments, SLOTS, STAGES } from "./support/deployments.ts";
import { FleetLoad, LOAD_ENV } from "./support/fleet-load.ts";
import { FreshConnections } from "./support/fresh-connections.ts";

/** Without luck, however busy this machine is. */
const SOON_MS = 90_000;
const RULES = { longestMs: LONGEST_MS, healingMs: 0, slots: 2 * SLOTS };
const TOOLS = { add: ({ a, b }: { a: number; b: number }) => a + b };
const CODE = "print(1)\nprint(await add(a=1, b=2))\nprint(await add(a=3, b=4))\n";

let all: Deployments;
beforeAll(async () => {
  all = await Deployments.start({ ...LOAD_ENV, TOOL_CALL_REQUEST_TIMEOUT: "240000" });
});
afterAll(async () => {
  expect(await all?.stop()).toEqual([]);
});

test("an update in order loses no request, refuses none, and every paused program goes on", async () => {
  const api = new FreshConnections(all.url);
  const paused: ToolCallRequired[] = [];
  for (let count = 0; count < 3; count++)
    paused.push(await startPaused(api, { code: CODE, language: "python", tools: declare(["add"]) }));
  const load = new FleetLoad(api, `update${randomUUID().slice(0, 8)}`, 2);
  for (const stage of STAGES) {
    const before = load.right;
    await all.update(stage);
    // Each stage is seen by some requests from their beginning to their end.
    await until(() => load.right >= before + 5 || load.seen.problems.length > 0, SOON_MS);
  }
  const found = await load.end([], RULES);
  console.log(JSON.stringify(load.counts));
  expect(found).toEqual([]);
  const driven = await Promise.all(paused.map((one) => driveOn(api, one, TOOLS)));
  for (const { answer } of driven) expect(answer).toMatchObject({ status: "completed", stdout: "1\n3\n7\n" });
  await until(async () => (await Promise.all(all.runners.map(isIdle))).every(Boolean), SOON_MS);
  await redisHolds(all.hand.redis.socket);
}, 900_000);
