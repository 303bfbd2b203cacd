import { constants } from "node:os";
import {
  compileEndingOf,
  type Ending,
  endingOf,
  faultEnding,
  type ObservedEnd,
  signalName,
} from "@svc/runner/execution/exit-status";
import { describe, expect, it } from "vitest";

const CAP = 65_536;
const LIMITS = { wallMs: 60_000, cpuMs: 1500, memoryBytes: 512 << 20, outputCap: CAP };
const exited = (exitCode = 0): ObservedEnd => ({
  cause: "exited",
  exitCode,
  signal: 0,
  stdoutTotal: 0,
  stderrTotal: 0,
});
const ended = (change: Partial<ObservedEnd>): ObservedEnd => ({ ...exited(), ...change });
const TO = "Time limit exceeded";
const CPU = "CPU time limit exceeded";
const ML = "Out of memory";
const OL = "stdout length exceeded";
const EL = "stderr length exceeded";
const SEGV = "Killed by signal SIGSEGV";
const over = CAP + 1;
const cut = (total: number) =>
  `(64 KiB kept of ${total.toLocaleString("en-US")} bytes; write large results to a file)`;

/** Messages as notes, with the limits that they name. */
const noted = (messages: readonly string[], end: ObservedEnd): string[] =>
  messages.map((message) => {
    if (message === OL) return `${OL} ${cut(end.stdoutTotal)}`;
    if (message === EL) return `${EL} ${cut(end.stderrTotal)}`;
    return (
      { [TO]: `${TO} (60 s)`, [CPU]: `${CPU} (1.5 s)`, [ML]: `${ML} (limit 512 MiB)` }[message] ?? message
    );
  });
const withNotes = ({ notes, ...expected }: Partial<Ending>, end: ObservedEnd): Partial<Ending> => ({
  ...expected,
  ...(notes === undefined ? {} : { notes: noted(notes, end) }),
});

const killed = (status: "TO" | "ML" | "OL" | "EL", message: string, notes: string[]): Partial<Ending> => ({
  status,
  code: 137,
  signal: "SIGKILL",
  message,
  notes,
});

const NO_PROGRAM = "The compiler made no program that can be executed";

const TABLE: [string, ObservedEnd, Partial<Ending>][] = [
  ...(
    [
      [constants.errno.ENOENT, "there is no such file"],
      [constants.errno.ETXTBSY, "ETXTBSY"],
    ] as const
  ).map(([execErrno, why]): [string, ObservedEnd, Partial<Ending>] => [
    `a compiler that left no program: ${why}`,
    ended({ exitCode: 127, execErrno }),
    {
      ...{ status: null, code: 127, signal: null, message: null, outcome: "program_error" },
      notes: [`${NO_PROGRAM}: ${why} (is the source a library?)`],
    },
  ]),
  [
    "exit 0",
    exited(0),
    { status: null, code: 0, signal: null, message: null, notes: [], outcome: "success" },
  ],
  [
    "exit 1",
    exited(1),
    { status: null, code: 1, signal: null, message: null, notes: [], outcome: "program_error" },
  ],
  ["exit 137 by choice", exited(137), { status: null, code: 137, signal: null, message: null, notes: [] }],
  ["exit 255", exited(255), { status: null, code: 255, signal: null }],
  ["output of exactly the cap", ended({ stdoutTotal: CAP, stderrTotal: CAP }), { status: null, notes: [] }],
  [
    "a crash",
    ended({ cause: "signaled", signal: 11 }),
    { status: "SG", code: 139, signal: "SIGSEGV", message: SEGV, notes: [SEGV], outcome: "program_error" },
  ],
  [
    "a kill by the program itself",
    ended({ cause: "signaled", signal: 9 }),
    { status: "SG", code: 137, signal: "SIGKILL", message: "Killed by signal SIGKILL" },
  ],
  ["the wall limit", ended({ cause: "wall_limit" }), { ...killed("TO", TO, [TO]), outcome: "timeout" }],
  ["the CPU limit", ended({ cause: "cpu_limit" }), { ...killed("TO", CPU, [CPU]), outcome: "timeout" }],
  [
    "the memory limit",
    ended({ cause: "memory_limit" }),
    { ...killed("ML", ML, [ML]), outcome: "memory_limit" },
  ],
  [
    "far too much stdout",
    ended({ cause: "stdout_limit", stdoutTotal: 64 * CAP + 1 }),
    { ...killed("OL", OL, [OL]), outcome: "output_limit" },
  ],
  [
    "far too much stderr",
    ended({ cause: "stderr_limit", stderrTotal: 64 * CAP + 1 }),
    { ...killed("EL", EL, [EL]), outcome: "output_limit" },
  ],
  [
    "too much stdout and exit 3",
    ended({ exitCode: 3, stdoutTotal: over }),
    { status: "OL", code: 3, signal: null, message: OL, notes: [OL], outcome: "output_limit" },
  ],
  [
    "too much stderr and exit 0",
    ended({ stderrTotal: over }),
    { status: "EL", code: 0, signal: null, message: EL, notes: [EL] },
  ],
  [
    "too much of both: stdout decides, both are noted",
    ended({ stdoutTotal: over, stderrTotal: over }),
    { status: "OL", code: 0, message: OL, notes: [OL, EL] },
  ],
  [
    "too much stdout and a crash: the output decides, both are noted",
    ended({ cause: "signaled", signal: 11, stdoutTotal: over }),
    { status: "OL", code: 139, signal: "SIGSEGV", message: OL, notes: [OL, SEGV] },
  ],
  [
    "too much stderr and a crash",
    ended({ cause: "signaled", signal: 11, stderrTotal: over }),
    { status: "EL", code: 139, message: EL, notes: [EL, SEGV] },
  ],
  [
    "the wall limit after too much output: the limit decides, all are noted",
    ended({ cause: "wall_limit", stdoutTotal: over, stderrTotal: over }),
    killed("TO", TO, [OL, EL, TO]),
  ],
  [
    "out of memory after too much output",
    ended({ cause: "memory_limit", stderrTotal: over }),
    killed("ML", ML, [EL, ML]),
  ],
  [
    "killed for stdout with too much stderr: the kill decides",
    ended({ cause: "stdout_limit", stdoutTotal: 64 * CAP + 1, stderrTotal: over }),
    killed("OL", OL, [OL, EL]),
  ],
  [
    "killed for stderr with too much stdout: the kill decides",
    ended({ cause: "stderr_limit", stderrTotal: 64 * CAP + 1, stdoutTotal: over }),
    killed("EL", EL, [OL, EL]),
  ],
];

describe("endingOf", () => {
  it.each(TABLE)("%s", (_what, end, expected) => {
    expect(endingOf(end, LIMITS)).toMatchObject(withNotes(expected, end));
  });

  it("takes an exit code of any size for what it is", () => {
    for (let code = 0; code <= 255; code++) {
      const ending = endingOf(exited(code), LIMITS);
      expect(ending).toMatchObject({ status: null, code, signal: null, message: null, notes: [] });
    }
  });

  it("gives every signal 128 and its number", () => {
    for (let signal = 1; signal <= 64; signal++) {
      const ending = endingOf(ended({ cause: "signaled", signal }), LIMITS);
      expect(ending).toMatchObject({ status: "SG", code: 128 + signal, signal: signalName(signal) });
    }
  });

  it("reports a stream over its cap whatever ended the run", () => {
    for (const [, end] of TABLE) {
      const { notes } = endingOf(end, LIMITS);
      for (const [message, total] of [
        [OL, end.stdoutTotal],
        [EL, end.stderrTotal],
      ] as const)
        expect(notes.some((note) => note.startsWith(message))).toBe(total > CAP);
      expect(new Set(notes).size).toBe(notes.length);
    }
  });
});

describe("signalName", () => {
  it.each([
    [1, "SIGHUP"],
    [6, "SIGABRT"],
    [7, "SIGBUS"],
    [9, "SIGKILL"],
    [11, "SIGSEGV"],
    [15, "SIGTERM"],
    [29, "SIGIO"],
    [31, "SIGSYS"],
    [32, "SIG32"],
    [34, "SIGRTMIN+0"],
    [64, "SIGRTMIN+30"],
  ])("%i is %s", (number, name) => {
    expect(signalName(number)).toBe(name);
  });
});

describe("the ending of a program at fault", () => {
  const text = "The program did not repeat its recorded tool calls";

  it("is a killed program's when the service ended it, whatever it took to do so", () => {
    expect(faultEnding(ended({ cause: "wall_limit" }), LIMITS, text)).toEqual({
      status: null,
      code: 137,
      signal: "SIGKILL",
      message: text,
      notes: [text],
      outcome: "program_error",
    });
  });

  it("keeps its own exit code when it had ended by itself", () => {
    expect(faultEnding(exited(0), LIMITS, text)).toMatchObject({
      code: 0,
      signal: null,
      message: text,
      notes: [text],
    });
    const crash = ended({ cause: "signaled", signal: 11 });
    expect(faultEnding(crash, LIMITS, text)).toMatchObject({ code: 139, status: "SG", notes: [SEGV, text] });
  });

  it("still tells of cut output first", () => {
    const flood = ended({ cause: "wall_limit", stdoutTotal: over });
    expect(faultEnding(flood, LIMITS, text)).toMatchObject({
      status: "OL",
      message: OL,
      notes: noted([OL, text], flood),
    });
  });
});

describe("compileEndingOf", () => {
  const CE = { status: "CE", signal: null, message: "Compilation failed", outcome: "compile_error" } as const;
  const UNFINISHED = "The compiler did not finish";

  it.each<[string, Partial<ObservedEnd>, Partial<Ending>]>([
    ["exit 1", { exitCode: 1 }, { ...CE, code: 1, notes: ["Compilation failed"] }],
    [
      "exit 1 with too much to say",
      { exitCode: 1, stderrTotal: over },
      { ...CE, code: 1, notes: [EL, "Compilation failed"] },
    ],
    ["a crash", { cause: "signaled", signal: 11 }, { ...CE, code: 139, notes: [SEGV, "Compilation failed"] }],
    ["its time", { cause: "wall_limit" }, killed("TO", TO, [TO, UNFINISHED])],
    ["its memory", { cause: "memory_limit" }, killed("ML", ML, [ML, UNFINISHED])],
    ["far too much to say", { cause: "stderr_limit", stderrTotal: over }, killed("EL", EL, [EL])],
  ])("a compiler that ends by %s failed", (_how, change, expected) => {
    const end = ended(change);
    expect(compileEndingOf(end, LIMITS)).toMatchObject(withNotes(expected, end));
  });

  it("one that ends with 0 did not, whatever it said", () => {
    expect(compileEndingOf(ended({ stderrTotal: over }), LIMITS)).toBeUndefined();
  });
});
