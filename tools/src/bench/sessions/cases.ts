/**
 * The cases of the measurement of sessions, as data: what the run before left, and the next run, which is measured. Every
 * program says whether it found the state. States of a given size are random bytes, which do not compress. Pure.
 */

export interface SessionCase {
  /** What the run before left. */
  state: string;
  /** The measured run leaves something else of the same size. */
  changed: boolean;
  lang: "bash" | "py";
  /** Leaves the state; absent: nothing is left. */
  first?: string;
  /** The measured program. */
  next: string;
  /** Bytes of the state without what an archive adds. */
  bytes: number;
  /** Samples as a share of --n. */
  share: number;
}

const MB = 1_000_000;
const FOUND = "found\n";
const NOT_FOUND = "nothing\n";

interface Kept extends Pick<SessionCase, "state" | "bytes" | "share"> {
  /** Makes it, differently each time. */
  make: string;
}

/** Files are in a hidden directory, so that they are not outputs: those are stored with and without sessions. */
const BASH_LOOKS = "[ -s .state/0 ] && echo found || echo nothing";
const randomFile = (bytes: number) => `mkdir -p .state\nhead -c ${bytes} /dev/urandom > .state/0`;

const FILES: readonly Kept[] = [
  {
    state: "ten small files",
    bytes: 10,
    share: 0.5,
    make: "mkdir -p .state\nfor i in {0..9}; do echo $EPOCHREALTIME > .state/$i; done",
  },
  { state: "a file of 1 MB", bytes: MB, share: 0.3, make: randomFile(MB) },
  { state: "a file of 50 MB", bytes: 50 * MB, share: 0.1, make: randomFile(50 * MB) },
];

const PYTHON_LOOKS = `print("found" if "state" in globals() else "nothing")`;
const COLUMNS = 10;
const randomFrame = (bytes: number) =>
  `state = pd.DataFrame(np.random.default_rng().integers(2**63, size=(${bytes / 8 / COLUMNS}, ${COLUMNS})))`;

const NUMBER: Kept = {
  state: "a Python number",
  bytes: 1,
  share: 0.5,
  make: `state = globals().get("state", 0) + 1`,
};
const FRAMES: readonly Kept[] = [
  { state: "a DataFrame of 1 MB", bytes: MB, share: 0.3, make: randomFrame(MB) },
  { state: "a DataFrame of 50 MB", bytes: 50 * MB, share: 0.1, make: randomFrame(50 * MB) },
];
const IMPORTS = "import numpy as np\nimport pandas as pd";

/** Both cases of a state: one run leaves it as it is, the other makes all of it anew. */
function bothRuns(lang: SessionCase["lang"], looks: string, { make, ...kept }: Kept): SessionCase[] {
  const first = `${looks}\n${make}`;
  return [
    { ...kept, lang, first, next: looks, changed: false },
    { ...kept, lang, first, next: first, changed: true },
  ];
}

const nothing = { changed: false, bytes: 0, share: 1 };

export const SESSION_CASES: readonly SessionCase[] = [
  { ...nothing, state: "nothing (Bash)", lang: "bash", next: "echo nothing" },
  { ...nothing, state: "nothing (Python)", lang: "py", next: `print("nothing")` },
  ...FILES.flatMap((kept) => bothRuns("bash", BASH_LOOKS, kept)),
  ...bothRuns("py", PYTHON_LOOKS, NUMBER),
  ...FRAMES.flatMap((kept) => bothRuns("py", `${IMPORTS}\n${PYTHON_LOOKS}`, kept)),
];

/** What the measurement reads of an answer. */
export interface SessionAnswer {
  code: number;
  stdout: string;
  session_state_persisted?: boolean;
  session_state_restore_failed?: boolean;
  session_state_dropped?: unknown;
}

/** Throws unless a program of a session found the state where there must be one, and all that it left was kept. */
export function checkKept(answer: SessionAnswer, hasState: boolean): void {
  const { session_state_persisted, session_state_restore_failed, session_state_dropped } = answer;
  const isKept =
    session_state_persisted === true &&
    session_state_restore_failed === false &&
    session_state_dropped === undefined;
  check(answer, isKept, hasState ? FOUND : NOT_FOUND);
}

/** Throws unless a program found nothing and its answer says nothing about sessions. */
export function checkWithout(answer: SessionAnswer): void {
  check(answer, answer.session_state_persisted === undefined, NOT_FOUND);
}

function check(answer: SessionAnswer, isAsMeant: boolean, stdout: string): void {
  if (isAsMeant && answer.code === 0 && answer.stdout === stdout) return;
  throw new Error(`unexpected result: ${JSON.stringify(answer).slice(0, 500)}`);
}
