/**
 * A program behaves as in an interpreter that Bash starts for it in a jail of its own: whatever it asks of itself, starts,
 * breaks or ends with, and whatever lies beside it under the name of a module.
 */
import { expect, test } from "vitest";
import { hostile, hostiles } from "../support/hostile.ts";
import { attacker } from "../support/running.ts";

const TIMEOUT = { status: "TO", code: 137, signal: "SIGKILL" };
const STDIN = "first\nsecond\n";
const ARGS = ["one", "two  words", "-O", "--", "ü"];
const METHODS = `import multiprocessing as mp, os
def work(n): return n * n
if __name__ == "__main__":
    for method in mp.get_all_start_methods():
        with mp.get_context(method).Pool(2) as pool: print(method, pool.map(work, range(5)))
`;

const PROGRAMS: Record<string, string> = {
  "arguments and names":
    "import sys\nprint(sys.argv, __file__, __name__, __spec__, __package__, sys.path, sys.flags, sys.orig_argv, sys.executable)",
  "input()": "print(input('? '), input())\ntry: input()\nexcept EOFError as end: print(repr(end))",
  "all start methods of multiprocessing": METHODS,
  subprocesses:
    "import os, subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv, sys.flags)', 'x'], capture_output=True), os.popen('ps -o args= -p $$ | head -1; ls /proc/self/fd').read())",
  "the interpreter executed again":
    "import os, sys\nif len(sys.argv) < 9: os.execv(sys.executable, [sys.executable, *sys.argv, 'more'])\nprint(sys.argv)",
  "a traceback":
    "def deep(n):\n    if n == 0: return {}['key']\n    return deep(n - 1)\ntry: deep(3)\nexcept KeyError as e: raise ValueError('chained') from e",
  "a traceback without end": "def f(): return f()\nf()",
  "a syntax error": "x = (1,\nprint('no'",
  "an exit code": "import atexit, sys\natexit.register(print, 'late')\nsys.exit(137)",
  "an exit with text": "raise SystemExit('said')",
  "a signal of its own":
    "import os, signal\nprint('before', flush=True)\nos.kill(os.getpid(), signal.SIGTERM)",
  "a crash": "import ctypes\nprint('lost')\nctypes.string_at(0)",
  "an abort": "import os\nos.abort()",
  "an end in the middle": "import os\nprint('lost')\nos._exit(9)",
  "threads that go on":
    "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\nprint('main')",
  warnings:
    "import warnings\nwarnings.warn('careful')\nprint([f[0] for f in warnings.filters][-3:])\nopen('/etc/passwd')",
  "the environment":
    "import os\nprint(sorted(k for k in os.environ if k not in ('_', 'SHLVL', 'OLDPWD', 'PWD')), os.getcwd(), os.umask(0))",
};

/** The same file, run by a Bash program's own interpreter; what Bash says of its end is not the program's. */
async function plainly(code: string) {
  const main = await attacker.stage("main.py", code);
  const lang = "bash";
  const answer = await hostile({
    lang,
    code: 'exec /usr/bin/python3 main.py "$@"',
    files: [main],
    args: ARGS,
    stdin: STDIN,
  });
  return answer;
}

test.each(Object.entries(PROGRAMS))("%s", async (_name, code) => {
  const shown = ({ stdout, stderr, code: exit, signal, status }: Awaited<ReturnType<typeof hostile>>) => ({
    stdout: stdout.replaceAll(/0x[0-9a-f]{6,}/g, "0x"),
    stderr,
    exit,
    signal,
    status,
  });
  const answer = await hostile({ lang: "py", code, args: ARGS, stdin: STDIN });
  expect(shown(answer)).toEqual(shown(await plainly(code)));
});

test.each(["random", "json", "numpy", "os", "encodings", "site", "this"])(
  "a file %s.py beside the program is the module of this name where a plain interpreter takes it",
  async (name) => {
    const beside = await attacker.stage(`${name}.py`, "mine = True");
    const main = await attacker.stage("main.py", `import ${name}\nprint(hasattr(${name}, "mine"))`);
    const warm = await hostile({
      lang: "py",
      code: `import ${name}\nprint(hasattr(${name}, "mine"))`,
      files: [beside],
    });
    const plain = await hostile({ lang: "bash", code: "exec python3 main.py", files: [beside, main] });
    expect([warm.stdout, warm.stderr, warm.code]).toEqual([plain.stdout, plain.stderr, plain.code]);
  },
);

test("programs that stop, block or crowd do not stand in the way of others", async () => {
  const stops = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)";
  const crowds =
    "import threading\nfor _ in range(200):\n    try: threading.Thread(target=lambda: any(iter(int, 1))).start()\n    except RuntimeError: break";
  const imports =
    "import sys\nwhile True:\n    for name in ('json', 'pandas.io'): sys.modules.pop(name, None)\n    import json, pandas.io";
  const programs = [stops, crowds, imports, "while True: pass"].map((code) => ({
    lang: "py",
    code,
    run_timeout: 3000,
  }));
  const answers = await hostiles([...programs, ...programs.slice(0, 2)]);
  for (const answer of answers) expect(answer).toMatchObject(TIMEOUT);
});
