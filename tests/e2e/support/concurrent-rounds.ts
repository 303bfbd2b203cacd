/**
 * Runs of one session at the same time, round after round. All runs of a round have the state of the round before when the first of
 * them ends: each writes its own mark into several files, into the name of a file and, in Python, into a variable, and stops itself until all
 * have. The winner's marks, and no others, are what the runs of the next round find.
 */
import { type ExecResponse, newId } from "@svc/contracts";
import { until } from "@svc/test-kit/system/processes";
import { STOP } from "@svc/test-kit/system/stopped-programs";
import { expect } from "vitest";
import { type Fleet, SOON_MS } from "./fleet.ts";

/** Two for each machine: every worker takes one job of each queue at a time. */
const RUNS = ["py", "bash", "py", "bash"] as const;
const FILES = ["a", "d/b", "d/e/c"];

const PROGRAMS = {
  py: (mark: string) => `
import glob, os
print(*[open(f).read().strip() for f in ${JSON.stringify(FILES)}], *glob.glob('own-*'), mark)
for f in ${JSON.stringify(FILES)}: open(f, 'w').write('${mark}')
for f in glob.glob('own-*'): os.remove(f)
open('own-${mark}', 'w').write('${mark}')
mark = '${mark}'
${STOP.py}
`,
  bash: (mark: string) => `
echo $(for f in ${FILES.join(" ")}; do cat $f; echo; done) own-*
rm own-*
for f in ${FILES.join(" ")} own-${mark}; do echo ${mark} > $f; done
${STOP.bash}
`,
};

export interface Told {
  /** Runs whose state was saved, and those that were told of a conflict. */
  saved: number;
  conflicts: number;
}

/** Throws at the first round that is not as it must be. */
export async function concurrentRounds(fleet: Fleet, rounds: number): Promise<Told> {
  await fleet.release();
  const runtime_session_hint = `rounds-${newId()}`;
  const first =
    "mark = 'first'\nimport os\nos.makedirs('d/e')\nfor f in ['a', 'd/b', 'd/e/c', 'own-first']: open(f, 'w').write('first')";
  expect(await fleet.api.exec({ lang: "py", code: first, runtime_session_hint })).toMatchObject({
    session_state_persisted: true,
  });
  let files = "first";
  let variable = "first";
  const told: Told = { saved: 1, conflicts: 0 };
  for (let round = 0; round < rounds; round++) {
    const marks = RUNS.map((lang, at) => `${round}-${lang}-${at}`);
    const answers = await oneRound(fleet, runtime_session_hint, marks, round);
    const found = `${`${files} `.repeat(FILES.length)}own-${files}`;
    for (const [at, answer] of answers.entries()) {
      expect(answer).toMatchObject({ code: 0, stderr: "", session_state_restore_failed: false });
      expect(answer.stdout, marks[at]).toBe(RUNS[at] === "py" ? `${found} ${variable}\n` : `${found}\n`);
      expect(answer.session_state_conflict === true, marks[at]).toBe(!answer.session_state_persisted);
    }
    const winners = marks.filter((_, at) => answers[at]?.session_state_persisted === true);
    expect(winners).toHaveLength(1);
    files = winners[0] as string;
    if (files.includes("py")) variable = files;
    told.saved += 1;
    told.conflicts += RUNS.length - 1;
  }
  return told;
}

/** All runs are stopped at their ends, two on each machine, before the first goes on. */
async function oneRound(
  fleet: Fleet,
  runtime_session_hint: string,
  marks: readonly string[],
  round: number,
): Promise<ExecResponse[]> {
  const runs = Promise.all(
    RUNS.map((lang, at) =>
      fleet.api.exec({ lang, code: PROGRAMS[lang](marks[at] as string), runtime_session_hint }),
    ),
  );
  // A run that ends before it has stopped itself is an error of its own.
  const ended = runs.then((answers) => {
    throw new Error(`no run waits: ${JSON.stringify(answers)}`);
  });
  const placed = until(
    () => fleet.stopped().every((pids) => pids.length === RUNS.length / 2),
    SOON_MS,
    () => fleet.stopped(),
  );
  await Promise.race([placed, ended]);
  ended.catch(() => undefined);
  const pids = fleet.stopped().flat();
  // Each place in the order goes first again and again.
  for (const at of pids.keys()) process.kill(pids[(at + round) % pids.length] as number, "SIGCONT");
  return runs;
}
