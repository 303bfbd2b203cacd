import { ServiceError } from "@svc/contracts";
import { innerErrorOf } from "@svc/service-kit";
import { isNeverAccepted, outcomeOf } from "@svc/worker/runner/outcome";
import { expect, test } from "vitest";
import { ofGuest } from "../../src/execution/guest-errors.ts";

const answered = (status: number, error: string) => ofGuest(innerErrorOf(status, { error })) as ServiceError;

test.each([
  [503, "runner_busy"],
  [503, "starting_up"],
  [503, "shutting_down"],
  [302, "input_unavailable"],
  [200, "invalid_request"],
])("a guest that answers %s %s says nothing of the launcher: its run has failed", (status, code) => {
  const error = answered(status, code);
  expect([error.code, error.status]).toEqual([
    "sandbox_execution_failed",
    new ServiceError("sandbox_execution_failed").status,
  ]);
  const seen = innerErrorOf(error.status, { error: error.code });
  expect([isNeverAccepted(seen), outcomeOf(seen)]).toEqual([false, "doubt"]);
});

test.each([
  [502, "input_unavailable"],
  [404, "execution_not_found"],
  [400, "invalid_request"],
])("why a run failed is taken from it: %s %s", (status, code) => {
  expect(answered(status, code)).toMatchObject({ status, code });
});

test("what is no answer stays as it is", () => {
  const broken = new Error("the channel has ended");
  expect(ofGuest(broken)).toBe(broken);
});
