/** Python programs of one session, run one after the other. The test carries the variables from run to run, as the runner does. */
import { JailRun, type RunOutcome } from "@svc/jail-client";
import type { Jaild } from "@svc/test-kit/jail/jaild";
import { bytesOf, type Job, stageIn } from "@svc/test-kit/jail/run";
import { variables, ZYGOTES } from "@svc/test-kit/jail/zygotes";

export const PRELUDE = "/usr/lib/svc/session/prelude.py";
export const SAVED = ".session_state.pkl";
export const LAST = ".session_state.last";
const HEADER_BYTES = 65_536;

export interface Dropped {
  name: string;
  reason: string;
}

export interface Header {
  v: number;
  names: string[];
  modules: string[];
  dropped: Dropped[];
}

export interface Step {
  out: string;
  err: string;
  end: RunOutcome["end"];
  startedWarm: boolean;
  /** What the program left, by path. */
  files: Record<string, Buffer>;
  /** The first line of the variables that it saved. */
  header: Header | undefined;
}

/** The first line, which must not be longer than its readers allow. */
export function headerOf(saved: Buffer): Header {
  const end = saved.indexOf("\n");
  if (end === -1 || end >= HEADER_BYTES) throw new Error("the first line is too long");
  return JSON.parse(saved.subarray(0, end).toString()) as Header;
}

export interface Options {
  zygote?: string;
  files?: Record<string, string | Buffer>;
  limits?: Job["limits"];
  argv?: readonly string[];
}

/** Runs a program of a session that has left `files`. */
export async function runStep(jaild: Jaild, code: string, options: Options = {}): Promise<Step> {
  const run = await JailRun.open(jaild.socket, new AbortController().signal);
  try {
    const { zygote, argv = [PRELUDE, "main.py"] } = options;
    if (zygote !== undefined && !(await run.warm(zygote))) throw new Error(`no ${zygote} zygote`);
    await stageIn(run, {
      argv: ["/usr/bin/python3", ...argv],
      env: variables(ZYGOTES[0]?.env ?? {}),
      files: { ...options.files, "main.py": code },
      ...(options.limits && { limits: options.limits }),
    });
    await run.start();
    const { end, stdout, stderr, listing } = await run.outcome();
    const files: Record<string, Buffer> = {};
    for (const [number, { path }] of listing.files.entries()) {
      const body = await bytesOf(run, number);
      if (body !== undefined && path.toString() !== "main.py") files[path.toString()] = body;
    }
    const saved = files[SAVED];
    return {
      out: stdout.toString(),
      err: stderr.toString(),
      end,
      startedWarm: run.startedWarm,
      files,
      header: saved && headerOf(saved),
    };
  } finally {
    run.close();
  }
}

/** A session: each program begins with what the one before left. */
export class Session {
  files: Record<string, Buffer> = {};
  readonly #jaild: Jaild;
  readonly #zygote: string | undefined;

  constructor(jaild: Jaild, zygote?: string) {
    this.#jaild = jaild;
    this.#zygote = zygote;
  }

  /** The next program; a run that saved nothing leaves the variables that it began with. */
  async step(code: string, limits?: Job["limits"]): Promise<Step> {
    const step = await runStep(this.#jaild, code, {
      files: this.files,
      ...(this.#zygote !== undefined && { zygote: this.#zygote }),
      ...(limits && { limits }),
    });
    const { [LAST]: last, ...files } = step.files;
    this.files = last === undefined ? files : { ...files, [SAVED]: last };
    return step;
  }

  /** What a program prints that shall end well and write no error. */
  async print(code: string): Promise<string> {
    const { out, err, end } = await this.step(code);
    if (err !== "" || end.exitCode !== 0) throw new Error(`${JSON.stringify(end)} ${err}`);
    return out;
  }
}
