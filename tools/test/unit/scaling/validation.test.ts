import { readMeasurements } from "@svc/tools/scaling/results";
import { validated, validatedSoak } from "@svc/tools/scaling/validation";
import { describe, expect, test } from "vitest";

const TOLERANCE = 0.15;
const measurements = readMeasurements();
const rows = [...validated(measurements), validatedSoak(measurements)];

describe("the simulation agrees with what was measured, of costs of one request at a time", () => {
  // One client alone leaves a processor idle: what it waits for is no processor time.
  const saturated = rows.filter(({ inFlight }) => inFlight > 1);

  test("for kinds and numbers of clients that differ", () => {
    expect(saturated.length).toBeGreaterThanOrEqual(6);
    expect(new Set(saturated.map(({ what }) => what)).size).toBeGreaterThanOrEqual(3);
  });

  test.each(saturated)("$what with $inFlight clients: within 15 %", ({ measured, simulated }) => {
    expect(Math.abs(simulated / measured - 1)).toBeLessThan(TOLERANCE);
  });

  test.each(rows.filter(({ inFlight }) => inFlight === 1))(
    "$what with one client: faster than measured, never slower",
    ({ measured, simulated }) => {
      expect(simulated).toBeGreaterThan(measured * (1 - TOLERANCE));
    },
  );
});
