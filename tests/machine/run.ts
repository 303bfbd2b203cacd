/**
 * What runs in a virtual machine of the tests: the test files that the plan has for it, and with cgroup v2 the jail's unit tests before them.
 * Usage: run.ts MACHINE FILTER… Filters pick the test files of which a part of the path is named; then the unit tests are left out.
 * Outcomes go to the second serial line as they come. A suite without tests has failed.
 */
import { appendFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { filesOf, isMachine } from "@svc/tools/testing/machines";
import { type Outcome, runCheck, runVitest } from "@svc/tools/testing/suites";
import { LAST_LINE } from "@svc/tools/testing/virtual-machine";

const LINE = "/dev/ttyS1";
const reports = mkdtempSync(join(tmpdir(), "svc-reports-"));
const [machine = "", ...filters] = process.argv.slice(2);
if (!isMachine(machine)) throw new Error(`no machine of the tests: ${machine}`);

function tell(outcome: Outcome): void {
  appendFileSync(LINE, `${JSON.stringify({ ...outcome, name: `${machine}: ${outcome.name}` })}\n`);
}

if (machine === "v2" && filters.length === 0) tell(await runCheck("jail (make check)"));
for (const [project, files] of filesOf(machine, filters)) {
  // One process for all files: its start takes long here.
  tell(await runVitest(project, ["--no-isolate", ...files], join(reports, `${project}.json`)));
}
appendFileSync(LINE, `${LAST_LINE}\n`);
