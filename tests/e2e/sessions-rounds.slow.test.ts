/** 500 rounds of concurrent runs of one session, on two machines, while unneeded snapshots are swept all the time. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { concurrentRounds } from "./support/concurrent-rounds.ts";
import { Fleet } from "./support/fleet.ts";

const ROUNDS = 500;

let fleet: Fleet;
beforeAll(async () => {
  fleet = await Fleet.start();
});
afterAll(async () => {
  expect(await fleet?.stop()).toEqual([]);
});

test("each round leaves the state of the one run that is told so, and what the others left is removed", async () => {
  expect(await concurrentRounds(fleet, ROUNDS)).toEqual({ saved: ROUNDS + 1, conflicts: 3 * ROUNDS });
  // What a run may still begin with is kept for a while; what lost is not.
  await expect.poll(() => fleet.storedSnapshots(), { timeout: 60_000 }).toBeLessThanOrEqual(ROUNDS + 1);
});
