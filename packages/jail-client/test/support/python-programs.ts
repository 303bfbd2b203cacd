/** Programs whose behaviour must not depend on how they started. What they print must be the same every time. */

import type { PythonJob } from "@svc/test-kit/jail/warm";
import { ENDS } from "./python-ends.ts";
import { FINALIZERS, one } from "./python-finalizers.ts";

export const PROGRAMS: Record<string, PythonJob> = {
  "its module": one(`
import sys
print(__name__, __file__, __spec__, __package__, __doc__, type(__loader__).__name__, __cached__, __annotations__)
print([name for name in globals() if name != "sys"], __builtins__ is sys.modules["builtins"], sys.modules["__main__"].__dict__ is globals())
print(vars().keys() == globals().keys(), dir())
`),
  "its arguments and paths": one(
    `
import os, sys
print(sys.argv, sys.orig_argv, sys.path, sys.executable, os.getcwd(), sys.flags, sys.warnoptions, sys._xoptions)
print(open("/proc/self/cmdline").read().split("\\0")[:2], os.readlink("/proc/self/exe"), open("/proc/self/comm").read())
`,
  ),
  "its environment": one(
    `
import os, subprocess, sys
print(list(os.environ.items()), os.getenv("GREETING"), os.environb[b"UMLAUT"])
print(subprocess.run(["/usr/bin/env"], capture_output=True, text=True).stdout)
os.environ["LATER"] = "1"
print(subprocess.run(["/bin/sh", "-c", "echo $LATER $GREETING"], capture_output=True, text=True).stdout)
`,
    { env: { GREETING: "hello", UMLAUT: "ü ☃", API_KEY: "x=y" } },
  ),
  "variables that only its loader was given": one(`
import ctypes, os, subprocess
names = (b"LD_BIND_NOW", b"PYTHONHASHSEED")
getenv = ctypes.CDLL(None).getenv; getenv.restype = ctypes.c_char_p
shown = open("/proc/self/environ", "rb").read()
print([(getenv(name), name in os.environb, name in shown) for name in names])
print(subprocess.run(["/bin/sh", "-c", "env; tr '\\0' '\\n' < /proc/self/environ"], capture_output=True, text=True).stdout)
`),
  "what a program that ran before would have left": one(`
import atexit, contextvars, gc, linecache, sys, threading, types, warnings
print([name for name in dir(sys) if name.startswith("last_")], sys.exc_info(), list(contextvars.copy_context()), linecache.cache)
print([name for name, module in list(sys.modules.items()) if "__warningregistry__" in vars(module)], warnings.onceregistry)
gc.collect(); held = gc.get_objects()
print([f for f in held if type(f) is types.FunctionType and (f.__module__ == "__main__" or f.__code__.co_filename in ("", __file__))])
print([sorted(names) for names in held if type(names) is dict and "__builtins__" in names and "f" in names], gc.garbage)
print(threading.Thread(target=str).name, threading.active_count(), threading.get_ident() == threading.main_thread().ident, threading.gettrace())
print(sys.getswitchinterval(), sys.getrecursionlimit(), sys.getprofile(), sys.path_hooks, sys.path, "" in sys.path_importer_cache)
print(sorted(globals()), sys.stdout.buffer, sys.stdout.closed, sys.intern("f" + "_") is sys.intern("f_"))
try: raise LookupError("here")
except LookupError as error: print(error.__context__, error.__cause__, error.__traceback__.tb_next)
warnings.warn("once"); warnings.warn("twice")
def g(): return sys._getframe(1).f_code.co_names[:3], sys._getframe(1).f_back
print(g()); undefined
`),
  "what the kernel shows of it": one(`
import os, re
status = open("/proc/self/status").read()
print(re.findall(r"^(?:Name|Umask|Pid|PPid|NSpid|Uid|Gid|Groups|Threads|Sig\\w+|Shd\\w+|Cap\\w+|NoNewPrivs|Seccomp|CoreDumping|Tgid):.*", status, re.M))
print(open("/proc/self/limits").read(), open("/proc/self/environ").read().rstrip("\\0").split("\\0"), os.getpid(), os.getppid(), os.getsid(0), os.getpgid(0))
print([re.sub("[0-9]+", "", os.readlink("/proc/self/fd/%d" % fd)) for fd in (0, 1, 2)], os.path.exists("/proc/self/fd/3"), os.listdir("/proc/self/task"))
print(sorted(os.sched_getaffinity(0)), os.getpriority(0, 0), os.sched_getscheduler(0), open("/proc/self/oom_score_adj").read())
print(sorted(n for n in os.listdir("/proc") if n.isdigit()), len(open("/proc/net/unix").readlines()))
if os.fork() == 0: os._exit(os.getpid())
print(os.waitstatus_to_exitcode(os.wait()[1]))
`),
  "its streams": one(
    `
import os, sys
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream, stream.errors, stream.line_buffering, stream.write_through, stream.seekable(), stream.buffer.raw, stream.isatty(), stream.fileno())
print(sys.stdin is sys.__stdin__, input("? "), input(), sys.stdin.readline(), repr(sys.stdin.read(3)), list(sys.stdin))
try: input()
except EOFError as error: print(repr(error))
`,
    { stdin: "first\nsecönd\nthird\nfourth\nfifth\n" },
  ),
  "no standard input": one("import sys, os\nprint(repr(sys.stdin.read()), os.readlink('/proc/self/fd/0'))"),
  "interpreter settings": one(`
import gc, signal, sys, threading, warnings, locale, decimal, os
print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.dont_write_bytecode, sys.gettrace(), sys.getprofile(), sys.excepthook is sys.__excepthook__, sys.displayhook)
print(gc.isenabled(), gc.get_threshold(), gc.garbage, sys.getfilesystemencoding(), sys.getdefaultencoding(), sys.stdout.encoding)
print([(s.name, str(signal.getsignal(s))) for s in signal.valid_signals() if hasattr(s, "name")], signal.pthread_sigmask(0, []))
print(threading.current_thread().name, threading.main_thread() is threading.current_thread(), threading.active_count(), threading.main_thread().is_alive(),
  threading.main_thread().native_id == os.getpid(), threading.excepthook, threading.stack_size())
print(locale.getlocale(), locale.setlocale(locale.LC_ALL), decimal.getcontext(), os.umask(0o22))
print([f for f in warnings.filters if f[3] is None and f[1] is None and f[2].__module__ == "builtins"], sorted(dir(__builtins__)))
`),
  "recursion: how deep, and its error": one(`
def depth(n=1):
    try: return depth(n + 1)
    except RecursionError: return n
print(depth())
def forever(): forever()
forever()
`),
  "frames: nothing is below the program": one(`
import inspect, sys, traceback
print(sys._getframe().f_back, len(inspect.stack()), inspect.stack()[0].function, sys._getframe().f_lineno)
def f(): traceback.print_stack(); print(len(inspect.stack()))
f()
`),
  "an uncaught exception": one(`
import json
def parse(text):
    try: return json.loads(text)
    except ValueError as error: raise RuntimeError("not parsed") from error
print("before")
parse("{")
`),
  "an exception in another file": {
    files: {
      "main.py": "import helper\nhelper.divide(0)\n",
      "helper.py": "def divide(n):\n    return 1 / n\n",
    },
  },
  "an exception group and notes": one(`
error = ExceptionGroup("several", [ValueError(1), TypeError("two")])
error.add_note("a note")
raise error
`),
  "an uncaught exception in colours": one("def divide(n): return 1 / n\ndivide(0)\n", {
    env: { FORCE_COLOR: "1" },
  }),
  "a syntax error": one("x = 1\nif x\n    pass\n"),
  "a syntax error in an import": { files: { "main.py": "import helper\n", "helper.py": "def f(:\n" } },
  "an unknown encoding": one("# -*- coding: nonsense -*-\nprint(1)\n"),
  "a NUL in the source": one("print(1)\n\0print(2)\n"),
  "a byte order mark, no line end": one("\ufeffprint('bom')"),
  "an empty file": one(""),
  "a future import": one("from __future__ import annotations\ndef f(x: y): pass\nprint(f.__annotations__)\n"),
  "sys.exit with nothing": one("import sys; print(1); sys.exit()"),
  "sys.exit with a number": one("import sys; sys.exit(7)"),
  "sys.exit with a large number": one("import sys; sys.exit(2**40 + 3)"),
  "sys.exit with True": one("import sys; sys.exit(True)"),
  "sys.exit with text": one("import sys; sys.exit('the réason')"),
  "sys.exit with an object": one("import sys; sys.exit(['a', 1])"),
  "SystemExit from a function, with finally": one(
    "def f():\n  try: raise SystemExit(3)\n  finally: print('finally')\nf()",
  ),
  "exit() and quit()": one("print(exit, quit, copyright is not None); exit(4)"),
  "os._exit": one("import os; print('lost?', flush=True); print('lost', end=''); os._exit(5)"),
  "exit code 137 of its own": one("import sys; sys.exit(137)"),
  "os.abort": one("import os; os.abort()"),
  "a segmentation fault": one("import ctypes; ctypes.string_at(0)"),
  "its own SIGTERM": one("import os, signal; os.kill(os.getpid(), signal.SIGTERM)"),
  "its own SIGKILL": one("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
  "a KeyboardInterrupt": one("import os, signal; os.kill(os.getpid(), signal.SIGINT)\nwhile True: pass"),
  "KeyboardInterrupt raised": one(
    "import atexit; atexit.register(print, 'end')\nraise KeyboardInterrupt('no')",
  ),
  "SIGPIPE is an error": one(`
import os
r, w = os.pipe(); os.close(r)
try: os.write(w, b"x")
except BrokenPipeError as error: print(error)
`),
  "a handler and an alarm": one(`
import signal
def handler(number, frame): raise TimeoutError(signal.Signals(number).name)
signal.signal(signal.SIGALRM, handler); signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.pause()
`),
  "atexit, threads and finalizers in their order": one(`
import atexit, sys, threading, time, weakref
class Noisy:
    def __init__(self, name): self.name = name
    def __del__(self, write=sys.stdout.write): write(f"del {self.name}\\n")
kept = Noisy("global"); ring = Noisy("ring"); ring.self = ring
class Holder: pass
holder = Holder(); weakref.finalize(holder, print, "finalize")
atexit.register(print, "first registered"); atexit.register(print, "last registered", file=sys.stderr)
ended = threading.Event()
def work(): ended.wait(); time.sleep(0.05); print("thread done")
threading.Thread(target=work).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("main done"); ended.set()
`),
  "finalizers of what other modules hold": one(`
import builtins, gc, os, sys
class Noisy:
    def __init__(self, name): self.name = name
    def __del__(self, write=os.write): write(1, f"del {self.name}\\n".encode())
kept = Noisy("global"); sys.stash = Noisy("sys"); builtins.stash = Noisy("builtins")
ring = Noisy("ring"); ring.self = ring
gc.disable()
`),
  ...FINALIZERS,
  ...ENDS,
  "an error in atexit, in a thread and in a finalizer": one(`
import atexit, threading
def bad(): raise ValueError("at exit")
atexit.register(bad)
class Broken:
    def __del__(self): raise KeyError("in del")
broken = Broken()
thread = threading.Thread(target=lambda: 1 / 0, name="worker"); thread.start(); thread.join()
`),
  "a failing excepthook, and one that exits": one(`
import sys
def hook(kind, error, trace): print("hook", kind.__name__); sys.exit(9)
sys.excepthook = hook
1 / 0
`),
  "unflushed output of all kinds": one(`
import sys, os
sys.stdout.write("no line end")
sys.stderr.write("an error without line end")
f = open("left.txt", "w"); f.write("never closed")
g = open("ring.txt", "w"); g.write("in a ring"); box = [g]; box.append(box)
`),
  "a closed standard output": one("import os; print('x', end=''); os.close(1)"),
  "a replaced standard output": one(`
import io, sys
class Tee(io.TextIOBase):
    def write(self, text): return sys.__stdout__.write(text.upper())
sys.stdout = Tee(); print("tee")
`),
  warnings: one(`
import warnings
def old(): warnings.warn("old", DeprecationWarning, stacklevel=2)
old(); old(); warnings.warn("seen"); warnings.warn("seen"); open("main.py")
eval("1 is 1")
`),
  logging: one(`
import logging
logging.warning("root"); logging.getLogger("a.b").error("child %s", 1)
logging.basicConfig(level=logging.INFO, force=True, format="%(levelname)s %(process)d %(threadName)s %(message)s"); logging.info("formatted")
try: 1 / 0
except ZeroDivisionError: logging.exception("traced")
print(logging.root.manager.loggerDict.get("a.b"), logging.root.level)
`),
  asyncio: one(`
import asyncio
async def one(n): await asyncio.sleep(0.01 * n); return n
async def main():
    print(await asyncio.gather(*map(one, range(5))), asyncio.current_task().get_name())
    process = await asyncio.create_subprocess_exec("echo", "hi", stdout=-1); print(await process.communicate())
asyncio.run(main())
try: asyncio.get_event_loop()
except RuntimeError as error: print(error)
asyncio.run(asyncio.wait_for(asyncio.sleep(9), 0.01))
`),
  subprocesses: one(`
import os, subprocess, sys
print(subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, __name__, sys.path[0])", "a"], capture_output=True, text=True).stdout)
print(subprocess.run("exit 3", shell=True).returncode, os.system("echo system; exit 2"), os.popen("echo popen").read())
print(subprocess.run(["/bin/bash", "-c", "ls -l /proc/self/fd | wc -l; trap; ulimit -n"], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout)
`),
  "becoming another interpreter": one(
    `
import os, sys
if len(sys.argv) < 3: os.execv(sys.executable, [sys.executable, __file__, "again", str(os.getpid())])
print(sys.argv[1:], os.getpid())
`,
  ),
  "a fork that goes on": one(`
import os, random, sys
print("parent", flush=True)
pid = os.fork()
if pid == 0: print("child", os.getppid() > 1); sys.exit(6)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`),
  "a fork beside a thread": one(`
import os, threading, time, warnings
warnings.simplefilter("always"); end = threading.Event()
thread = threading.Thread(target=end.wait, name="waits"); thread.start()
pid = os.fork()
if pid == 0: os._exit(len(threading.enumerate()))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), threading.enumerate() == [threading.main_thread(), thread])
end.set(); thread.join(); main = threading.main_thread()
print(main.is_alive(), main.native_id == threading.get_native_id() == os.getpid(), main.name, main.daemon, threading.current_thread() is main)
`),
  "the names of a function and of a module, and who watches": one(`
import sys
def f(a):
    names = locals(); names["a"] = names["b"] = 2; exec("a = 3"); frame = sys._getframe()
    frame.f_locals["a"] = 4
    return a, sorted(names), sorted(locals()), type(frame.f_locals).__name__
print(f(1), locals() is globals(), [x for x in [1]], sys.call_tracing(f, (1,)))
watched = getattr(sys, "monitoring", None)
print(watched and [watched.get_tool(n) for n in range(6)], sys.getrefcount(None) > 1000, getattr(sys, "_git", None))
def g(): yield from [1]
for event in (lines := []) or [1]: sys.settrace(lambda *a: lines.append(a[1])); list(g()); sys.settrace(None)
print(lines)
`),
  ...Object.fromEntries(
    ["fork", "spawn", "forkserver"].map((method) => [
      `multiprocessing by ${method}`,
      one(`
import multiprocessing as mp, os
def square(x): return x * x
class Thing: value = 3
def look(queue, thing): queue.put((thing.value, __name__, mp.current_process().name, mp.parent_process() is not None))
if __name__ == "__main__":
    mp.set_start_method("${method}")
    with mp.Pool(2) as pool: print(sum(pool.map(square, range(10))))
    queue = mp.Queue(); process = mp.Process(target=look, args=(queue, Thing())); process.start(); print(queue.get()); process.join()
    print(process.exitcode, mp.current_process().name)
`),
    ]),
  ),
  "a process pool executor": one(`
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import math
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool: print(list(pool.map(math.factorial, range(6))))
    with ThreadPoolExecutor(2) as pool: print(list(pool.map(math.factorial, range(6))))
`),
  "pickles of its own classes": one(`
import dataclasses, pickle, copy, typing, enum
@dataclasses.dataclass
class Point: x: int; y: "int" = 2
class Colour(enum.Enum): RED = 1
print(pickle.loads(pickle.dumps([Point(1), Colour.RED])), copy.deepcopy(Point(3)), typing.get_type_hints(Point), Point.__module__)
`),
  "importing itself and its neighbours": {
    files: {
      "main.py":
        "import sys\nif __name__ == '__main__':\n    import main, pkg.inner, space.part\n    print(main.__name__, main.__spec__.origin, pkg.inner.x, space.part.y)\n    print(sorted(n for n in sys.modules if n.split('.')[0] in ('main', 'pkg', 'space', '__main__')))\n    import __main__; print(__main__.__file__)\n    import nothing_like_this\n",
      "pkg/__init__.py": "",
      "pkg/inner.py": "x = 1",
      "space/part.py": "y = 2",
    },
  },
  "numpy and pandas": one(`
import numpy as np, pandas as pd
frame = pd.DataFrame({"k": list("abab"), "v": [1.5, 2, None, 4]})
print(frame.groupby("k").v.agg(["mean", "count"]), frame.describe(), np.arange(6).reshape(2, 3) @ np.ones(3), np.random.default_rng(1).integers(9, size=4))
np.random.seed(3); print(np.random.rand(2), pd.Series(np.random.rand(2)).round(3).tolist(), np.geterr(), np.get_printoptions()["precision"])
print(np.array([1, 2]) / 0, pd.options.display.max_rows)
frame.nothing
`),
  "a figure": one(`
import matplotlib, matplotlib.pyplot as plt, os
print(matplotlib.get_backend(), plt.get_fignums(), matplotlib.rcParams["font.size"], matplotlib.get_configdir(), matplotlib.get_cachedir()[:5])
plt.plot([1, 2, 3]); plt.title("$x^2$"); print(plt.gcf().number); plt.savefig("plot.png"); print(os.path.getsize("plot.png") > 1000)
plt.figure(); plt.bar(["a"], [1]); plt.show()
`),
  "figures, to the pixel": one(`
import datetime, hashlib, matplotlib.pyplot as plt, numpy as np, pandas as pd
days = [datetime.date(2024, 1, n) for n in range(1, 9)]
plt.plot(days, range(8)); plt.savefig("dates.png")
pd.Series(range(8), index=pd.to_datetime(days)).plot(title="series"); plt.savefig("series.png")
plt.figure(); plt.hist(np.arange(20) % 7); plt.savefig("hist.png")
print([hashlib.sha256(open(f"{name}.png", "rb").read()).hexdigest() for name in ("dates", "series", "hist")])
print(sorted(str(key) for key in plt.matplotlib.units.registry))
`),
  "seeded generators": one(`
import random
random.seed(5); print(random.random(), random.sample(range(99), 3))
`),
  "a time limit, with what was printed before": one(
    "import time\nprint('line'); print('part', end='', flush=True)\ntime.sleep(30)",
    { limits: { wallMs: 2000 } },
  ),
  "too much memory": one("x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1\n", {
    limits: { memoryBytes: 128 << 20 },
  }),
  "too many open files and processes": one(
    `
import errno, os
files = []
try:
    while True: files.append(open("/dev/null"))
except OSError as error: print(errno.errorcode[error.errno], len(files))
import resource
print([resource.getrlimit(r) for r in range(16)])
`,
    { limits: { openFiles: 100, processes: 20 } },
  ),
  "a file that grows too large": one(
    "f = open('big', 'wb')\ntry: f.write(b'x' * 3000000); f.flush()\nexcept OSError as error: print(error)\nfinally: f.close()",
    { limits: { fileBytes: 1 << 20 } },
  ),
  "exec, eval, compile and dis": one(
    "import dis, code, ast\nexec('a = 1'); print(a, eval('a + 1'), ast.dump(ast.parse('a')))\ndis.dis('a + 1')\ncompile('1 +', 'given', 'exec')",
  ),
  "pdb without a terminal": one("x = 1\nbreakpoint()\nprint('after')", { stdin: "p x\nc\n" }),
  "runpy and a module of the library": one(
    "import runpy, sys\nsys.argv = ['x', '-e']\nrunpy.run_module('timeit', run_name='not_main')\nrunpy.run_path('main2.py', run_name='__main__')",
  ),
};
