/**
 * The end of the output of `./svc test`: the messages of flaky and failed tests, a line for each suite, and the counts of
 * all. The names of these tests come once more before the counts, for readers of the last lines of a log.
 */
import { paint } from "@svc/cli/terminal";
import type { Outcome } from "./suites.ts";

export function summary(outcomes: readonly Outcome[]): string {
  const failures = outcomes.flatMap((outcome) => outcome.failures);
  const flaky = outcomes.flatMap((outcome) => outcome.flaky);
  const sum = (pick: (outcome: Outcome) => number) =>
    outcomes.reduce((total, outcome) => total + pick(outcome), 0);
  const counts = [
    `${sum(({ passed }) => passed)} passed`,
    `${sum(({ failed }) => failed)} failed`,
    ...(flaky.length > 0 ? [`${flaky.length} flaky`] : []),
  ];
  return [
    ...listed("Flaky (failed, and passed when repeated):", flaky),
    ...listed("Failed:", failures),
    "",
    ...outcomes.map(line),
    ...named("Failed:", failures),
    ...named("Flaky:", flaky),
    "",
    counts.join(", "),
  ].join("\n");
}

const listed = (title: string, texts: readonly string[]) =>
  texts.length === 0 ? [] : ["", title, "", texts.join("\n\n")];

/** The first line of each text, its file and name, once: a suite may run in two passes. */
const named = (title: string, texts: readonly string[]) => {
  const names = new Set(texts.map((text) => text.split("\n", 1)[0]));
  return names.size === 0 ? [] : ["", title, ...[...names].map((name) => `  ${name}`)];
};

function line({ name, passed, failed, flaky, seconds }: Outcome): string {
  const mark = failed === 0 ? paint(process.stdout, "green", "ok  ") : paint(process.stdout, "red", "FAIL");
  const counts = `${String(passed).padStart(5)} passed ${String(failed).padStart(4)} failed`;
  const repeated = flaky.length > 0 ? `${String(flaky.length).padStart(3)} flaky` : "";
  return `${mark}  ${name.padEnd(24)} ${counts} ${repeated.padEnd(9)} ${seconds.toFixed(1)} s`;
}
