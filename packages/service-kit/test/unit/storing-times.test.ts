/** Who waits for content to be stored waits longer than who stores it, so that nothing is sent again while it is still stored. */
import { STORING_MS } from "@svc/contracts";
import { VARIABLES, valueProblems } from "@svc/service-kit";
import { expect, test } from "vitest";

test("the times of storing nest: the store, the gateway, who sent it", () => {
  const gatewayMs = 2 * VARIABLES.EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS.fallback;
  expect(STORING_MS.content + STORING_MS.record).toBeLessThan(gatewayMs);
  expect(gatewayMs).toBeLessThan(STORING_MS.answer);
});

test("the gateway's time cannot be set so long that who sent content gives up first", () => {
  const problems = (value: number) => valueProblems({ EGRESS_GATEWAY_UPSTREAM_TIMEOUT_MS: String(value) });
  expect(problems(29_000)).toEqual([]);
  expect(problems(STORING_MS.answer / 2)).toEqual([expect.stringContaining("29000")]);
});
