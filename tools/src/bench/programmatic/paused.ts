/** Many paused programs at once: what they cost while nobody answers, what others notice, and that all of them end. */
import { setTimeout as sleep } from "node:timers/promises";
import type { PrivateCopy } from "@svc/test-kit/system/private-copy";
import { cpuByComponent, pssByComponent } from "../accounting.ts";
import type { LoadClient } from "../load-client.ts";
import { timed } from "../measure.ts";
import { HELLO } from "../scenarios.ts";
import { round, type Summary, sum, summarize } from "../statistics.ts";
import { finishProgram, startProgram } from "./driver.ts";
import { BY_CALLS } from "./scenarios.ts";

export interface PausedRow {
  /** Programs that wait for their caller. */
  paused: number;
  /** Proportional set size of all components, and what each program adds to the size without any. */
  totalMib: number;
  perProgramMib: number;
  /** Processor milliseconds of all components in a second without requests. */
  idleCpuMsPerSecond: number;
  /** hello-python beside them. */
  hello: Summary;
  /** From the resume to the program's end; absent when no program is paused. */
  resume?: Summary;
}

const COUNTS = [0, 32, 100] as const;
const AT_ONCE = 4;
const WATCHED_MS = 4000;
const HELLOS = 40;

export async function measurePaused(copy: PrivateCopy, client: LoadClient): Promise<PausedRow[]> {
  const rows: PausedRow[] = [];
  let withNoneMib = 0;
  for (const count of COUNTS) {
    const waiting = await atOnce(Array.from({ length: count }), () => startProgram(client, ONE_CALL));
    await sleep(WATCHED_MS / 4);
    const idleCpuMsPerSecond = await cpuOfQuiet(copy);
    const totalMib = sum(pssByComponent(copy.state()).values());
    if (count === 0) withNoneMib = totalMib;
    const hellos: number[] = [];
    for (let index = 0; index < HELLOS; index++) {
      hellos.push(await timed(() => client.exec("py", HELLO.python, "1\n")));
    }
    const resumes = await atOnce(waiting, (paused) => timed(() => finishProgram(client, ONE_CALL, paused)));
    rows.push({
      paused: count,
      totalMib: round(totalMib),
      perProgramMib: count === 0 ? 0 : round((totalMib - withNoneMib) / count),
      idleCpuMsPerSecond: round(idleCpuMsPerSecond),
      hello: summarize(hellos),
      ...(count === 0 ? {} : { resume: summarize(resumes) }),
    });
  }
  return rows;
}

const ONE_CALL = (() => {
  const found = BY_CALLS[0];
  if (found === undefined) throw new Error("there is no scenario of one call");
  return found.program;
})();

async function cpuOfQuiet(copy: PrivateCopy): Promise<number> {
  const before = sum(cpuByComponent(copy.state()).values());
  await sleep(WATCHED_MS);
  return ((sum(cpuByComponent(copy.state()).values()) - before) / WATCHED_MS) * 1000;
}

async function atOnce<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = items.values();
  const one = async () => {
    for (const item of left) results.push(await work(item));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return results;
}
