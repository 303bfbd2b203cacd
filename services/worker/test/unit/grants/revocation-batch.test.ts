import { setTimeout as sleep } from "node:timers/promises";
import { MAX_ENDED_GRANTS } from "@svc/contracts";
import { RevocationBatch } from "@svc/worker/grants/revocation-batch";
import { describe, expect, it } from "vitest";

const WAIT_MS = 20;

function make() {
  const sent: string[][] = [];
  const ended = new RevocationBatch(async (grants) => {
    sent.push(grants.map(({ grant_id }) => grant_id));
  }, WAIT_MS);
  const add = (grant_id: string) => ended.add({ grant_id, reason: "completed", requestId: "r" });
  return { ended, sent, add };
}

describe("grants of rounds that are over", () => {
  it("ride with a registration that comes soon, once", async () => {
    const { ended, sent, add } = make();
    add("a");
    add("b");
    expect(ended.take().map(({ grant_id }) => grant_id)).toEqual(["a", "b"]);
    expect(ended.take()).toEqual([]);
    await sleep(WAIT_MS * 3);
    expect(sent).toEqual([]);
  });

  it("are sent together when none comes", async () => {
    const { sent, add } = make();
    add("a");
    add("b");
    await expect.poll(() => sent).toEqual([["a", "b"]]);
    add("c");
    await expect.poll(() => sent).toEqual([["a", "b"], ["c"]]);
  });

  it("are never more than a registration takes", () => {
    const { ended, sent, add } = make();
    for (let n = 0; n < MAX_ENDED_GRANTS + 1; n++) add(`${n}`);
    expect(sent.map((grants) => grants.length)).toEqual([MAX_ENDED_GRANTS]);
    expect(ended.take()).toHaveLength(1);
  });

  it("are sent at the end", async () => {
    const { ended, sent, add } = make();
    add("a");
    await ended.flush();
    await ended.flush();
    expect(sent).toEqual([["a"]]);
  });
});
