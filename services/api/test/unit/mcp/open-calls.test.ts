import { OpenCalls } from "@svc/api/mcp/open-calls";
import { expect, it } from "vitest";

const ALICE = { principal: { tenantId: "tenant", userId: "alice" }, label: "one" };
const LONG = "x".repeat(1_000_000);

it("a request is cancelled by its sender alone, by an id of any length, until it is over", () => {
  const calls = new OpenCalls();
  const cancelled: string[] = [];
  const leave = calls.enter(ALICE, LONG, () => cancelled.push("long"));
  calls.enter(ALICE, 1, () => cancelled.push("number"));
  calls.enter(ALICE, "1", () => cancelled.push("text"));
  calls.cancel({ ...ALICE, label: "two" }, LONG);
  calls.cancel({ ...ALICE, principal: { tenantId: "tenant", userId: "bob" } }, LONG);
  calls.cancel(ALICE, `${LONG}y`);
  expect(cancelled).toEqual([]);
  calls.cancel(ALICE, LONG);
  calls.cancel(ALICE, 1);
  expect(cancelled).toEqual(["long", "number"]);
  leave();
  calls.cancel(ALICE, LONG);
  expect(cancelled).toEqual(["long", "number"]);
  expect(calls.count).toBe(2);
});

it("a request without a label or an id is not kept", () => {
  const calls = new OpenCalls();
  calls.enter({ ...ALICE, label: undefined }, 1, () => undefined);
  for (const id of [undefined, null, {}, true]) calls.enter(ALICE, id, () => undefined);
  expect(calls.count).toBe(0);
});
