/** How runs end: limits to the millisecond, every exit code, every signal, and programs that cannot be started or stopped. */
import type { ExecResponse } from "@svc/contracts";
import { slow, times } from "@svc/test-kit/jail/slowness";
import { describe, expect, test } from "vitest";
import { besiege, hostile, hostiles } from "../support/hostile.ts";
import { attacker, bystander } from "../support/running.ts";

/** A slow machine serves fewer programs at once. */
const LANES = times(4);
const TIMEOUT = { status: "TO", code: 137, signal: "SIGKILL", message: "Time limit exceeded" };
const python = (code: string, more: object = {}) => ({ lang: "py", code, ...more });
const bash = (code: string, more: object = {}) => ({ lang: "bash", code, ...more });

/** Runs a program for each item, some at a time, and answers the results in order. */
async function forEach<T>(
  items: readonly T[],
  program: (item: T) => Record<string, unknown>,
): Promise<ExecResponse[]> {
  const answers: ExecResponse[] = [];
  let next = 0;
  const lane = async () => {
    for (let at = next++; at < items.length; at = next++) {
      answers[at] = await attacker.exec({ run_timeout: 20_000, ...program(items[at] as T) });
    }
  };
  await besiege(() => Promise.all(Array.from({ length: LANES }, lane)));
  return answers;
}

describe("time", () => {
  test.each([1, 50, 333, 1000, 1777])("a limit of %i ms is never cut short, and ends soon", async (limit) => {
    const answer = await hostile(bash("while :; do :; done", { run_timeout: limit }));
    expect(answer).toMatchObject(TIMEOUT);
    expect(answer.wall_time).toBeGreaterThanOrEqual(limit);
    expect(answer.wall_time).toBeLessThan(limit + 2000);
  });

  test("a program that ends just before its limit has ended by itself", async () => {
    const answer = await hostile(
      python("import time\ntime.sleep(1)\nprint('whole')", { run_timeout: 10_000 }),
    );
    expect(answer).toMatchObject({ status: null, code: 0, stdout: "whole\n" });
    expect(answer.wall_time).toBeGreaterThanOrEqual(1000);
  });

  const STUBBORN: [string, object][] = [
    [
      "ignores every signal",
      python(
        "import signal, time\nfor s in signal.valid_signals() - {9, 19}:\n    signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)",
      ),
    ],
    [
      "blocks every signal in every thread",
      python(
        "import signal, threading, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nfor _ in range(20): threading.Thread(target=time.sleep, args=(60,)).start()\ntime.sleep(60)",
      ),
    ],
    [
      "answers every signal with a new process",
      python(
        "import os, signal, time\ndef again(*_):\n    try: os.fork()\n    except OSError: pass\nfor s in signal.valid_signals() - {9, 17, 19}:\n    signal.signal(s, again)\nfor _ in range(5): os.kill(0, signal.SIGUSR1)\nwhile True: time.sleep(60)",
      ),
    ],
    ["stops itself", bash("kill -STOP $$; echo awake")],
    [
      "stops everything, and itself",
      python(
        "import os, signal, time\nfor _ in range(20):\n    if os.fork() == 0: time.sleep(60); os._exit(0)\nos.kill(-1, signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)",
      ),
    ],
    [
      "stops and continues its children without end",
      python(
        "import os, signal, time\npids = []\nfor _ in range(20):\n    pid = os.fork()\n    if pid == 0:\n        while True: time.sleep(60)\n    pids.append(pid)\nwhile True:\n    for pid in pids: os.kill(pid, signal.SIGSTOP); os.kill(pid, signal.SIGCONT)",
      ),
    ],
    ["reads from a pipe that it keeps open itself", python("import os\nr, w = os.pipe()\nos.read(r, 1)")],
    ["reads from a fifo that nobody writes", bash("mkfifo f; cat f")],
    [
      "waits for itself",
      python("import os, threading\nlock = threading.Lock(); lock.acquire(); lock.acquire()"),
    ],
    ["sleeps beyond all time", python("import time\ntime.sleep(10 ** 9)")],
    [
      "sets its own alarms",
      python(
        "import signal, time\nsignal.signal(signal.SIGALRM, lambda *_: None)\nsignal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)\nwhile True: time.sleep(60)",
      ),
    ],
    [
      "waits for another file's lock",
      python(
        "import fcntl, os\nf = open('l', 'w'); fcntl.flock(f, fcntl.LOCK_EX)\nif os.fork() == 0: pass\nfcntl.flock(open('l', 'w'), fcntl.LOCK_EX)",
      ),
    ],
  ];
  test.each(STUBBORN)("a program that %s ends at its limit", async (_name, program) => {
    const answer = await hostile({ run_timeout: 1000, ...program });
    expect(answer).toMatchObject(TIMEOUT);
    expect(answer.wall_time).toBeGreaterThanOrEqual(1000);
    expect(answer.wall_time).toBeLessThan(3000);
  });

  test("a limit above the ceiling is lowered; one below a millisecond is refused", async () => {
    expect(await hostile(bash("true", { run_timeout: Number.MAX_SAFE_INTEGER }))).toMatchObject({ code: 0 });
    for (const run_timeout of [0, -1, 0.5, Number.POSITIVE_INFINITY, "1", Number.NaN]) {
      const answer = await attacker.tryExec(bash("true", { run_timeout }));
      // What JSON has no number for is null, and null is absent.
      const isAbsent = typeof run_timeout === "number" && !Number.isFinite(run_timeout);
      expect([run_timeout, answer.status]).toEqual([run_timeout, isAbsent ? 200 : 400]);
    }
  });

  test("six that never end at once, all of them end", async () => {
    const answers = await hostiles(
      Array.from({ length: 6 }, () => python("while True: pass", { run_timeout: 1500 })),
    );
    for (const answer of answers) expect(answer).toMatchObject(TIMEOUT);
  });
});

describe("standard input", () => {
  test.each([
    ["never read", bash("echo begun; sleep 0.2"), "begun\n"],
    ["closed unread", bash("exec 0<&-; echo begun"), "begun\n"],
    [
      "read again and again",
      python(
        "import os, sys\na = len(sys.stdin.buffer.read()); b = len(sys.stdin.buffer.read())\nos.lseek(0, 0, 0); print(a, b, len(os.read(0, 10)))",
      ),
      "2000000 0 10\n",
    ],
    ["read by many at once", bash("for n in 1 2 3 4; do wc -c & done; wait"), /^(\d+\n){4}$/],
  ] as [string, object, string | RegExp][])(
    "of megabytes that is %s holds nothing up",
    async (_name, program, stdout) => {
      const answer = await hostile({ ...program, stdin: "x".repeat(2_000_000) });
      expect(answer).toMatchObject({ code: 0, status: null });
      if (typeof stdout === "string") expect(answer.stdout).toBe(stdout);
      else expect(answer.stdout).toMatch(stdout);
    },
  );

  test("that is not given ends at once, however long it is waited for", async () => {
    const answer = await hostile(
      python("import os, select\nprint(select.select([0], [], [], 30)[0] == [0], os.read(0, 10))"),
    );
    expect(answer).toMatchObject({ stdout: "True b''\n", code: 0 });
    expect(answer.wall_time).toBeLessThan(15_000);
  });

  test("cannot be written: what was given stays what it was", async () => {
    const code =
      "import os\ntry: print(os.write(0, b'changed'))\nexcept OSError as e: print(e.strerror)\nprint(os.read(0, 100))";
    const answer = await hostile(python(code, { stdin: "given" }));
    expect(answer).toMatchObject({ code: 0 });
    expect(answer.stdout).toMatch(/b'given'\n$|^7\n/);
  });
});

describe("exit codes", () => {
  test("0 to 255 are the program's own, also those above 128", { timeout: slow(300_000) }, async () => {
    const codes = Array.from({ length: 256 }, (_, code) => code);
    const answers = await forEach(codes, (code) => bash(`exit ${code}`));
    const plain = { signal: null, status: null, message: null, stderr: "" };
    for (const code of codes) expect(answers[code]).toMatchObject({ code, ...plain });
  });

  test.each([137, 139, 124, 255])("%i by a program that pretends to have been killed", async (code) => {
    const text = `[sandbox] Time limit exceeded\n`;
    const answer = await hostile(bash(`printf '[sandbox] Time limit exceeded\\n' >&2; exit ${code}`));
    expect(answer).toMatchObject({ code, signal: null, status: null, message: null, stderr: text });
  });

  test("of a child that was killed is the shell's word for it, and no limit's", async () => {
    const answer = await hostile(bash("sleep 60 & kill -9 $!; wait $!"));
    expect(answer).toMatchObject({ code: 137, signal: null, status: null, message: null });
  });
});

describe("signals", () => {
  const STOPPING = [19, 20, 21, 22];
  const IGNORED = [17, 18, 23, 28];
  const all = Array.from({ length: 64 }, (_, at) => at + 1).filter(
    (number) => number !== 32 && number !== 33,
  );
  const program = (number: number) =>
    python(`import ctypes, os
libc = ctypes.CDLL(None)
os.write(1, b"before\\n")
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.signal(${number}, None)
os.kill(os.getpid(), ${number})
os.write(1, b"after\\n")`);

  test("each that ends a program is named, with its number", async () => {
    const ending = all.filter((number) => !STOPPING.includes(number) && !IGNORED.includes(number));
    const answers = await forEach(ending, program);
    for (const [at, number] of ending.entries()) {
      const answer = answers[at] as ExecResponse;
      expect(answer).toMatchObject({ code: 128 + number, status: "SG", stdout: "before\n" });
      expect(answer.signal).toMatch(/^SIG[A-Z0-9]+(\+\d+)?$/);
      expect(answer.message).toBe(`Killed by signal ${answer.signal}`);
      expect(answer.stderr).toBe(`[sandbox] Killed by signal ${answer.signal}\n`);
    }
    expect(new Set(answers.map(({ signal }) => signal)).size).toBe(ending.length);
  });

  test("each that does nothing does nothing", async () => {
    for (const answer of await forEach(IGNORED, program)) {
      expect(answer).toMatchObject({ code: 0, status: null, stdout: "before\nafter\n" });
    }
  });

  test("each that stops a program leaves it to the time limit", async () => {
    const answers = await forEach([19], (number) => ({ ...program(number), run_timeout: 700 }));
    for (const answer of answers) expect(answer).toMatchObject({ ...TIMEOUT, stdout: "before\n" });
    // A program that nobody could continue is not stopped by the terminal's signals: it is the last of its kind.
    for (const answer of await forEach([20, 21, 22], program)) {
      expect(answer).toMatchObject({ code: 0, status: null, stdout: "before\nafter\n" });
    }
  });

  test("from a child kill the program as its own would", async () => {
    const answer = await hostile(
      python(
        "import os, signal, time\nif os.fork() == 0: os.kill(os.getppid(), signal.SIGTERM); os._exit(0)\ntime.sleep(60)",
      ),
    );
    expect(answer).toMatchObject({ status: "SG", signal: "SIGTERM", code: 143 });
  });
});

describe("programs that cannot be started", () => {
  test("of a language that is not there are refused by name", async () => {
    for (const lang of ["cobol", "/bin/sh", "../python", "python\0", "PYTHON ", "__proto__"]) {
      const { status, refusal } = await attacker.tryExec({ lang, code: "" });
      expect([lang, status, refusal.error]).toEqual([lang, 400, "unsupported_language"]);
    }
  });

  test.each([
    ["an interpreter that is not there", "printf '#!/no/such/interpreter\\n' > p; chmod +x p; ./p", 127],
    ["an interpreter that is itself", "printf '#!/mnt/data/p\\n' > p; chmod +x p; ./p", 126],
    ["an interpreter that is a folder", "printf '#!/tmp\\n' > p; chmod +x p; ./p", 126],
    ["no program at all", "head -c 4096 /dev/urandom > p; chmod +x p; ./p", 126],
    [
      "a program for another machine",
      "printf '\\177ELF\\002\\001\\001\\000\\000\\000\\000\\000\\000\\000\\000\\000\\002\\000\\363\\000' > p; chmod +x p; ./p",
      126,
    ],
  ])("%s is an ordinary error of who starts it", async (_name, code, status) => {
    const answer = await hostile(bash(`(${code}) 2> /dev/null; echo $?`));
    expect(answer).toMatchObject({ code: 0, status: null });
    // Some kernels say so only after they began: then it is a signal of the child.
    expect([`${status}\n`, "127\n", "1\n", "2\n"]).toContain(answer.stdout);
  });

  test("with arguments that are too long together are refused before they run", async () => {
    const refused = await attacker.tryExec(bash("echo ran", { args: Array(30).fill("x".repeat(99_000)) }));
    expect([refused.status, refused.refusal.error]).toEqual([400, "invalid_request"]);
    expect(refused.refusal.details?.map(({ path }) => path)).toEqual(["args"]);
    const fits = await hostile(
      bash("echo $#; printf %s $1 | wc -c", { args: Array(12).fill("x".repeat(100_000)) }),
    );
    expect(fits.stdout).toBe("12\n100000\n");
  });

  test("by another program for its arguments are an ordinary error of that one", async () => {
    const answer = await hostile(bash("/bin/echo $(seq 1000000) > /dev/null; echo $?"));
    expect(answer).toMatchObject({ stdout: "126\n", code: 0, status: null });
  });

  test("that remove their own interpreter's file cannot", async () => {
    const answer = await hostile(
      bash("rm -f /usr/bin/bash /usr/bin/python3 2>&1 | grep -c 'Read-only'; exec python3 -c 'print(1)'"),
    );
    expect(answer).toMatchObject({ stdout: "2\n1\n", code: 0 });
  });
});

describe("ordinary ends work:", () => {
  test.each([
    ["GNU timeout", bash("timeout 0.1 sleep 5; echo $?; timeout -s KILL 0.1 sleep 5; echo $?"), "124\n137\n"],
    ["a trap at the end", bash("trap 'echo bye' EXIT; echo hi"), "hi\nbye\n"],
    [
      "what Python does at exit",
      python("import atexit\natexit.register(print, 'bye')\nprint('hi')"),
      "hi\nbye\n",
    ],
    [
      "signals that are handled",
      python(
        "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: print('term'))\nos.kill(os.getpid(), signal.SIGTERM)\nprint('on')",
      ),
      "term\non\n",
    ],
    ["a killed job of the shell", bash("sleep 60 & kill $!; wait $!; echo $?"), "143\n"],
    [
      "a group that is killed",
      bash("setsid --wait bash -c 'trap \"echo trapped\" TERM; kill 0'; echo after"),
      "trapped\nafter\n",
    ],
  ] as [string, object, string][])("%s", async (_name, program, stdout) => {
    expect(await bystander.exec(program as Record<string, unknown>)).toMatchObject({
      stdout,
      code: 0,
      status: null,
    });
  });
});
