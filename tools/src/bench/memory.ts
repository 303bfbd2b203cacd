/** Memory of a copy: idle, after all else, and with pandas programs that run at the same time. Proportional set sizes. */
import { setTimeout as sleep } from "node:timers/promises";
import { settledHoldings } from "@svc/test-kit/system/holdings";
import type { PrivateCopy } from "@svc/test-kit/system/private-copy";
import { pssByComponent } from "./accounting.ts";
import type { LoadClient } from "./load-client.ts";
import { round, sum } from "./statistics.ts";

export interface MemoryRow {
  /** MiB by component, once all jails of the warm pools wait and there was no request for a while. */
  idleMib: Record<string, number>;
  /** The same after the load. */
  afterLoadMib: Record<string, number>;
  /** MiB of all components while this number of pandas programs run at the same time. */
  running: { programs: number; mib: number }[];
  /** MiB that each further program adds. */
  perProgramMib: number;
}

const PROGRAMS = [1, 8] as const;
const SAMPLE_MS = 200;
/** Long enough that all of them have imported pandas and still run, also when all start cold on two cores. */
const PROGRAM = `import time
import pandas as pd
frame = pd.DataFrame({"k": list("abcd"), "v": range(4)})
print(frame.v.sum(), flush=True)
time.sleep(8)`;

/** Pauses after which the numbers are taken, so that they compare with earlier results. */
const QUIET_MS = { start: 15_000, work: 135_000 };

export async function idleMemory(
  copy: PrivateCopy,
  after: keyof typeof QUIET_MS,
): Promise<Record<string, number>> {
  await settledHoldings(copy);
  await sleep(QUIET_MS[after]);
  return Object.fromEntries([...pssByComponent(copy.state())].map(([name, mib]) => [name, round(mib)]));
}

export async function memoryOfPrograms(
  copy: PrivateCopy,
  client: LoadClient,
): Promise<Pick<MemoryRow, "running" | "perProgramMib">> {
  const running: MemoryRow["running"] = [];
  for (const programs of PROGRAMS) running.push({ programs, mib: round(await most(copy, client, programs)) });
  const [one, many] = running;
  const further = (many?.programs ?? 0) - (one?.programs ?? 0);
  return { running, perProgramMib: round(((many?.mib ?? 0) - (one?.mib ?? 0)) / further) };
}

/** The highest value while this number of programs run. At some time all of them are there, and then sleep. */
async function most(copy: PrivateCopy, client: LoadClient, programs: number): Promise<number> {
  let ended = false;
  const answers = Promise.all(
    Array.from({ length: programs }, async () => {
      await client.exec("py", PROGRAM, "6\n");
      ended = true;
    }),
  );
  let highest = 0;
  while (!ended) {
    highest = Math.max(highest, sum(pssByComponent(copy.state()).values()));
    await Promise.race([sleep(SAMPLE_MS), answers]);
  }
  await answers;
  return highest;
}
