/** The command line of `./svc scaling` as a workload and machines. */
import { wholeNumber } from "@svc/cli/options";
import { Problem, USAGE_EXIT_CODE } from "@svc/cli/problem";
import type { Costs } from "./costs.ts";
import { MACHINES, type Machines } from "./plan.ts";
import { TOOLS, USUAL, type Workload } from "./workload.ts";

export const OPTIONS = {
  rps: { value: "N", doc: "Requests per second (default 10)." },
  mix: { value: "KIND=SHARE,…", doc: "Kinds of requests and their shares (default: see --help below)." },
  "own-ms": { value: "MS", doc: "Processor time of each program beyond its kind's (default 0)." },
  "wait-ms": { value: "MS", doc: "Time in which each program only waits (default 0)." },
  inputs: { value: "N", doc: "Input files of each run (default 0)." },
  outputs: { value: "N", doc: "Output files of each run (default 0)." },
  "file-kib": { value: "KIB", doc: "Size of each of these files (default 0: small)." },
  calls: { value: "N", doc: "Calls of each program of kind `tools` (default 3)." },
  "pause-ms": { value: "MS", doc: "How long the caller takes for each call (default 2000)." },
  cores: { value: "N", doc: "Processors of a machine (default 8)." },
  memory: { value: "GIB", doc: "Memory of a machine (default 32)." },
  busy: { value: "PERCENT", doc: "How busy processors are to be at most (default 60)." },
  speed: { value: "PERCENT", doc: "Speed of a processor; 100: bare `python3 -c 'print(1)'` takes 9.9 ms." },
} as const;

type Values = Readonly<Record<keyof typeof OPTIONS, string | undefined>>;

const number = (values: Values, name: keyof typeof OPTIONS, fallback: number, min: number, max: number) =>
  values[name] === undefined ? fallback : wholeNumber(name, values[name], min, max);

export function workloadOf(values: Values, costs: Costs): Workload {
  const of = (name: keyof typeof OPTIONS, fallback: number, min: number, max: number) =>
    number(values, name, fallback, min, max);
  return {
    perSecond: of("rps", USUAL.perSecond, 1, 100_000),
    mix: values.mix === undefined ? USUAL.mix : parseMix(values.mix, costs),
    ownMs: of("own-ms", USUAL.ownMs, 0, 300_000),
    waitMs: of("wait-ms", USUAL.waitMs, 0, 300_000),
    inputs: of("inputs", USUAL.inputs, 0, 256),
    outputs: of("outputs", USUAL.outputs, 0, 50),
    fileMib: of("file-kib", 0, 0, 25_600) / 1024,
    calls: of("calls", USUAL.calls, 0, 200),
    pauseMs: of("pause-ms", USUAL.pauseMs, 0, 300_000),
  };
}

export function machinesOf(values: Values): Machines {
  return {
    cores: number(values, "cores", MACHINES.cores, 1, 1024),
    memoryGib: number(values, "memory", MACHINES.memoryGib, 2, 65_536),
    busy: number(values, "busy", MACHINES.busy * 100, 5, 95) / 100,
    speed: number(values, "speed", MACHINES.speed * 100, 5, 1000) / 100,
  };
}

export const kindsOf = (costs: Costs): string[] => [...Object.keys(costs.kinds), TOOLS];

/** `hello-python=60,pandas=40`; every kind is a known one, and some share is above 0. */
export function parseMix(text: string, costs: Costs): Record<string, number> {
  const known = kindsOf(costs);
  const mix: Record<string, number> = {};
  for (const part of text.split(",")) {
    const [, name = "", share = ""] = /^([a-z0-9-]+)=(\d{1,6})$/.exec(part) ?? [];
    if (!known.includes(name) || Object.hasOwn(mix, name))
      throw wrong(`--mix has no KIND=SHARE in ${JSON.stringify(part)}`, `Kinds: ${known.join(", ")}`);
    mix[name] = Number(share);
  }
  if (!Object.values(mix).some((share) => share > 0)) throw wrong("--mix has no share above 0");
  return mix;
}

const wrong = (message: string, advice?: string) => new Problem(message, advice, USAGE_EXIT_CODE);
