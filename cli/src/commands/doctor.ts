/** `./svc doctor`: one line per check, with the fix. Changes nothing. */
import { defineCommand } from "../command.ts";
import { CHECKS } from "../doctor/checks.ts";
import { type Finding, verdict } from "../doctor/finding.ts";
import { INSTANCE_OPTIONS } from "../instance.ts";
import { findCopy } from "../running-copy.ts";
import { withSwitches } from "../settings/switches.ts";
import { paint, printable, printJson } from "../terminal.ts";

const COLOURS = { ok: "green", warn: "yellow", fail: "red" } as const;

export const doctor = defineCommand({
  usage: "doctor",
  summary: "Checks this machine and, when it runs, every component. Names what is missing and the fix.",
  details: "Exit codes: 0 fit; 1 when something would make the service unsafe or unable to run.",
  options: {
    json: { doc: "Print {ok, checks} as JSON: ok is false where the exit code is 1." },
    microvm: {
      doc: "Look at this machine as ./svc up --microvm does: can microVMs run here, and by what?",
    },
    ...INSTANCE_OPTIONS,
  },
  run: async ({ values }, configured) => {
    const { instance, state } = findCopy(values);
    const read = withSwitches(configured, { microvm: values.microvm || state?.mode?.usesMicrovms });
    const findings: Finding[] = [];
    for (const check of CHECKS) {
      const found = await check(instance, read);
      findings.push(...found);
      if (!values.json) for (const finding of found) printFinding(finding);
    }
    const isFit = !findings.some(({ grade }) => grade === "fail");
    if (values.json) printJson({ ok: isFit, checks: findings });
    else console.log(`\n${verdict(findings)}`);
    return isFit ? 0 : 1;
  },
});

function printFinding({ grade, subject, note, fix }: Finding): void {
  const mark = paint(process.stdout, COLOURS[grade], grade.padEnd(4));
  console.log(`${mark}  ${subject.padEnd(17)} ${printable(note)}`);
  if (fix !== undefined)
    console.log(`      ${"".padEnd(17)} ${paint(process.stdout, "dim", `fix: ${printable(fix)}`)}`);
}
