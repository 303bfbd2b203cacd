/** A resume whose round does not start: the token stays good, and a program that is still kept goes on alive. */
import { ERRORS, type ErrorCode, type Job, type JobResult, type ToolCallRequired } from "@svc/contracts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ENDED, PAUSED, type Programs, startPrograms } from "../../support/programs.ts";

let made: Programs;
/** How the rounds end, one after the other, and how each was asked for. */
let ends: JobResult[] = [];
let asked: string[] = [];
const failed = (code: ErrorCode): JobResult => ({ ok: false, error: { code, ...ERRORS[code] } });
const askedFor = ({ resume, ptc }: Job) => (resume === undefined ? ptc?.mode : "resume");
beforeAll(async () => {
  made = await startPrograms((job) => {
    asked.push(String(askedFor(job)));
    return ends.shift() ?? ENDED;
  });
});
afterAll(() => made.stop());

async function paused(...then: JobResult[]): Promise<ToolCallRequired> {
  ends = [PAUSED, ...then];
  const body = (await (await made.start()).json()) as ToolCallRequired;
  asked = [];
  return body;
}

it("is a 503 while the runner that keeps the program is busy, and the next one resumes it there", async () => {
  const program = await paused(failed("sandbox_setup_failed"), failed("sandbox_setup_failed"));
  for (let times = 0; times < 2; times++) {
    const refused = await made.resume(program);
    expect([refused.status, await refused.json()]).toEqual([
      503,
      expect.objectContaining({ error: "sandbox_setup_failed" }),
    ]);
  }
  expect(await (await made.resume(program)).json()).toMatchObject({ status: "completed" });
  expect(asked).toEqual(["resume", "resume", "resume"]);
});

it("runs the program again from the top when it is lost, also after a refusal", async () => {
  const program = await paused(failed("sandbox_setup_failed"), failed("execution_not_found"));
  expect((await made.resume(program)).status).toBe(503);
  expect(await (await made.resume(program)).json()).toMatchObject({ status: "completed" });
  expect(asked).toEqual(["resume", "resume", "replay"]);
});
