/** Generated programs with tools give one and the same answer: live and by replay, in Python and in Bash. */

import { slow, times } from "@svc/test-kit/jail/slowness";
import { Api } from "@svc/test-kit/system/api";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { drive } from "@svc/test-kit/system/programmatic";
import { type Service, startService } from "@svc/test-kit/system/service";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EVERY_KIND, expected, inBash, inPython, program, TOOLS } from "./support/generated-programs.ts";

const PROGRAMS = times(12);
const WITHIN_MS = slow(240_000);

let systems: Service[] = [];
beforeAll(async () => {
  for (const PTC_MODE of ["live", "replay"]) {
    systems.push(await startService({ ...OPEN_PROGRAM_LIMITS, PTC_MODE }));
  }
});
afterAll(async () => {
  for (const system of systems) expect(await system.stop()).toEqual([]);
  systems = [];
});

/** What a caller sees of a whole program. */
async function outcome(api: Api, lang: string, code: string) {
  const { answer, pauses } = await drive(api, { lang, code }, TOOLS);
  const contents = answer.files.map(async (file) => [file.name, (await api.bytes(file)).toString()]);
  return {
    status: answer.status,
    code: answer.code,
    stdout: answer.stdout,
    stderr: answer.stderr,
    files: await Promise.all(contents),
    calls: answer.tool_calls_made,
    batches: pauses.map(({ tool_calls }) => tool_calls.map(({ input }) => input.n).sort(ascending)),
  };
}
const ascending = (a: unknown, b: unknown) => Number(a) - Number(b);

test(
  "a generated program answers what it must, live and by replay, in both languages",
  async () => {
    const apis = systems.map(({ url }) => new Api(url));
    const property = fc.asyncProperty(program, async (generated) => {
      const { stdout, files, batches } = expected(generated);
      const must = {
        status: generated.code === 0 ? "completed" : "error",
        code: generated.code,
        stdout,
        stderr: "",
        files,
        calls: batches.flat().length,
        batches,
      };
      const sources = [
        ["python", inPython(generated)],
        ["bash", inBash(generated)],
      ] as const;
      const runs = apis.flatMap((api) => sources.map(([lang, code]) => outcome(api, lang, code)));
      expect(await Promise.all(runs)).toEqual(runs.map(() => must));
    });
    await fc.assert(property, { numRuns: PROGRAMS, examples: [[EVERY_KIND]] });
  },
  WITHIN_MS,
);
