/** Who waits for content to be stored waits longer than who stores it, so that nothing is sent again while it is still stored. */
import { STORING_MS } from "@svc/contracts";
import { VARIABLES } from "@svc/service-kit";
import { expect, test } from "vitest";

test("the times of storing nest: the store, the gateway, who sent it", () => {
  const gatewayMs = 2 * VARIABLES.EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS.fallback;
  expect(STORING_MS.content + STORING_MS.record).toBeLessThan(gatewayMs);
  expect(gatewayMs).toBeLessThan(STORING_MS.answer);
});
