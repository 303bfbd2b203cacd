/**
 * What runs in the virtual machine of `./svc test --v2`: the jail's unit tests, the live tests that control groups have
 * a part in, those of jaild in groups of its own, and a slice of the whole system; or, under systemd, those of the service. Outcomes go to the second serial line
 * as they come. Arguments pick the test files of which a part of the path is named; then the unit tests are left out. A suite
 * without tests has failed.
 */
import { appendFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MACHINE_FILES } from "@svc/tools/testing/plan";
import { type Outcome, runCheck, runVitest } from "@svc/tools/testing/suites";
import { LAST_LINE, SERVICE } from "@svc/tools/testing/virtual-machine";

const LINE = "/dev/ttyS1";
const reports = mkdtempSync(join(tmpdir(), "svc-reports-"));
const filters = process.argv.slice(2);
/** Where systemd is the first process. */
const ofService = filters.includes(SERVICE) ? MACHINE_FILES.service : [];
const chosen = (files: readonly string[]) =>
  files.filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));

function tell(outcome: Outcome): void {
  appendFileSync(LINE, `${JSON.stringify({ ...outcome, name: `v2: ${outcome.name}` })}\n`);
}

if (filters.length === 0) tell(await runCheck("jail (make check)"));
for (const [project, files] of [
  ["live", chosen(MACHINE_FILES.live)],
  ["v2", [...chosen(MACHINE_FILES.v2), ...ofService]],
] as const) {
  if (files.length === 0) continue;
  // One process for all files: its start takes long here.
  tell(await runVitest(project, ["--no-isolate", ...files], join(reports, `${project}.json`)));
}
appendFileSync(LINE, `${LAST_LINE}\n`);
