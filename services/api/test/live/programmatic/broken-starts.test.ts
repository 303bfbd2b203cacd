/** A first round that the service broke: the error tells of the execution once the program had started. */
import { ERRORS, type ErrorCode, type JobResult } from "@svc/contracts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Programs, pauseOf, startPrograms } from "../../support/programs.ts";

let made: Programs;
/** How the attempts end, one after the other. */
let ends: JobResult[] = [];
const failed = (code: ErrorCode): JobResult => ({ ok: false, error: { code, ...ERRORS[code] } });
beforeAll(async () => {
  made = await startPrograms(() => ends.shift() ?? failed("internal_error"));
});
afterAll(() => made.stop());
const NAMED = {
  status: "error",
  error_type: "infrastructure",
  session_id: expect.stringMatching(/^[\w-]{21}$/),
};

it.each<[status: number, codes: ErrorCode[]]>([
  [502, ["sandbox_execution_failed", "sandbox_execution_failed"]],
  [502, ["internal_error"]],
  [504, ["execution_timeout"]],
  // The second attempt did not start, but the first had.
  [503, ["sandbox_execution_failed", "sandbox_setup_failed"]],
])("is a %i that names the session: %j", async (status, codes) => {
  ends = codes.map(failed);
  const answer = await made.start();
  expect(answer.status).toBe(status);
  expect(await answer.json()).toMatchObject({ error: codes.at(-1), ...NAMED });
});

it("names the session of a program that paused, where its calls cannot be read", async () => {
  const { pending_calls: _, ...large } = pauseOf("call_001");
  ends = [{ ok: true, answer: large }];
  const answer = await made.start();
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ error: "store_unavailable", ...NAMED });
});

it.each<ErrorCode>(["sandbox_setup_failed", "storage_unavailable", "input_unavailable"])(
  "names nothing of a program that did not start: %s",
  async (code) => {
    ends = [failed(code)];
    const body = (await (await made.start()).json()) as Record<string, unknown>;
    expect(body).toMatchObject({ error: code });
    expect(Object.keys(body)).not.toContain("session_id");
    expect(Object.keys(body)).not.toContain("error_type");
  },
);
