/**
 * What runs in the virtual machine of `./svc test --v2`: the jail's unit tests, the live tests that control groups have
 * a part in, those of jaild in groups of its own, and a slice of the whole system. Outcomes go to the second serial line
 * as they come. Arguments pick the test files of which a part of the path is named; then the unit tests are left out. A suite
 * without tests has failed.
 */
import { appendFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Outcome, runCheck, runVitest } from "@svc/tools/testing/suites";
import { LAST_LINE } from "@svc/tools/testing/virtual-machine";

const LINE = "/dev/ttyS1";
const LIVE = [
  "limits",
  "lifecycle",
  "pause",
  "confinement",
  "syscalls",
  "shared-kernel",
  "two-runs",
  "zygotes",
  "shortage",
  "takeover",
].map((name) => `packages/jail-client/test/live/${name}.test.ts`);
const V2 = ["tests/v2/groups.test.ts", "tests/v2/system.test.ts"];

const reports = mkdtempSync(join(tmpdir(), "svc-reports-"));
const filters = process.argv.slice(2);
const chosen = (files: readonly string[]) =>
  files.filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));

function tell(outcome: Outcome): void {
  appendFileSync(LINE, `${JSON.stringify({ ...outcome, name: `v2: ${outcome.name}` })}\n`);
}

if (filters.length === 0) tell(await runCheck("jail (make check)"));
for (const [project, files] of [
  ["live", chosen(LIVE)],
  ["v2", chosen(V2)],
] as const) {
  if (files.length === 0) continue;
  // One process for all files: its start takes long here.
  tell(await runVitest(project, ["--no-isolate", ...files], join(reports, `${project}.json`)));
}
appendFileSync(LINE, `${LAST_LINE}\n`);
