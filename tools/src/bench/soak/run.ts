/**
 * A soak: a mixture of many runs, eight at a time, every answer checked. After each tenth the copy comes to rest and shows
 * what it holds, so that tenths can be compared: nothing may grow, nothing may become slower.
 */

import type { Note } from "@svc/cli/terminal";
import { type PrivateCopy, startPrivateCopy } from "@svc/test-kit/system/private-copy";
import { LoadClient } from "../load-client.ts";
import { timed } from "../measure.ts";
import { type Origin, VERSIONS } from "../result.ts";
import { begin } from "../run.ts";
import { type Mode, settingsOf } from "../settings.ts";
import { percentile, round } from "../statistics.ts";
import { type Held, heldBy } from "./held.ts";
import { type Kind, plan, type Run } from "./kinds.ts";

const TENTHS = 10;
const CONCURRENCY = 8;
/** Before the first tenth: pools fill and code is compiled. */
const WARM_UP = 200;
const KEPT_ERRORS = 20;

export interface Latency {
  n: number;
  p50: number;
  p99: number;
}

export interface Tenth {
  runs: number;
  perSecond: number;
  errors: number;
  /** Milliseconds of all kinds whose duration the service determines. */
  latency: Latency;
  kinds: Record<string, Latency>;
  /** After the tenth. */
  held: Held;
}

export interface SoakResult extends Origin {
  version: typeof VERSIONS.soak;
  kind: "soak";
  mode: Mode;
  runs: number;
  concurrency: number;
  settings: Record<string, string>;
  /** Before the first run. */
  start: Held;
  tenths: Tenth[];
  /** The first few. */
  errors: string[];
}

export async function soak(mode: Mode, runs: number): Promise<SoakResult> {
  const { progress, end } = await begin(2);
  const settings = settingsOf(mode);
  const copy = await progress.step(`Starting a private copy (${mode})`, () =>
    startPrivateCopy({ env: settings }),
  );
  const client = new LoadClient(copy.url);
  try {
    const errors: string[] = [];
    const { start, tenths } = await progress.step(`${runs} runs, ${CONCURRENCY} at a time`, (note) =>
      everyTenth(copy, client, runs, errors, note),
    );
    return {
      version: VERSIONS.soak,
      ...end(),
      ...{ kind: "soak", mode, runs, concurrency: CONCURRENCY, settings, start, tenths, errors },
    };
  } finally {
    client.close();
    await copy.stop();
  }
}

async function everyTenth(
  copy: PrivateCopy,
  client: LoadClient,
  runs: number,
  errors: string[],
  note: Note,
): Promise<Pick<SoakResult, "start" | "tenths">> {
  const start = await heldBy(copy);
  const content = Buffer.from(Array.from({ length: 1000 }, (_, index) => `${index + 1}\n`).join(""));
  const [input] = await client.upload([{ name: "input.txt", content }]);
  if (input === undefined) throw new Error("the upload was answered without its file");
  const run = { client, input };
  await mixed(run, plan(WARM_UP), 0, errors);
  const kinds = plan(Math.round(runs / TENTHS));
  const tenths: Tenth[] = [];
  for (let number = 0; number < TENTHS; number++) {
    const part = await mixed(run, kinds, WARM_UP + number * kinds.length, errors);
    tenths.push({ ...part, held: await heldBy(copy) });
    note(`tenth ${number + 1}: p99 ${part.latency.p99.toFixed(0)} ms, ${part.errors} errors`);
  }
  return { start, tenths };
}

/** All of these runs, a few at a time. */
async function mixed(
  run: Omit<Run, "number">,
  kinds: readonly Kind[],
  firstNumber: number,
  errors: string[],
): Promise<Omit<Tenth, "held">> {
  const times = new Map<Kind, number[]>(kinds.map((kind) => [kind, []]));
  const left = kinds.entries();
  let failed = 0;
  const one = async () => {
    for (const [index, kind] of left) {
      try {
        const ms = await timed(() => kind.run({ ...run, number: firstNumber + index }));
        times.get(kind)?.push(ms);
      } catch (error) {
        failed++;
        if (errors.length < KEPT_ERRORS) errors.push(`${kind.name} ${firstNumber + index}: ${String(error)}`);
      }
    }
  };
  const elapsedMs = await timed(() => Promise.all(Array.from({ length: CONCURRENCY }, one)));
  const serviced = [...times].flatMap(([kind, samples]) => (kind.isSlow ? [] : samples));
  return {
    runs: kinds.length,
    perSecond: round((kinds.length / elapsedMs) * 1000),
    errors: failed,
    latency: latencyOf(serviced),
    kinds: Object.fromEntries([...times].map(([{ name }, samples]) => [name, latencyOf(samples)])),
  };
}

function latencyOf(samples: readonly number[]): Latency {
  const sorted = [...samples].sort((left, right) => left - right);
  return {
    n: sorted.length,
    p50: round(percentile(sorted, 0.5)),
    p99: round(percentile(sorted, 0.99)),
  };
}
