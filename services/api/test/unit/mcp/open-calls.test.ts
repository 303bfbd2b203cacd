import { OpenCalls } from "@svc/api/mcp/open-calls";
import { expect, it, vi } from "vitest";

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
});

it("a request without a label or an id is not kept", () => {
  const calls = new OpenCalls();
  const cancel = vi.fn();
  const nameless = { ...ALICE, label: undefined };
  for (const [sender, id] of [
    [nameless, 1] as const,
    ...[undefined, null, {}, true].map((id) => [ALICE, id] as const),
  ]) {
    calls.enter(sender, id, cancel);
    calls.cancel(sender, id);
  }
  expect(cancel).not.toHaveBeenCalled();
});
