/** Programs that differ in how they end, and in what the interpreter has to do then. */

import type { PythonJob } from "@svc/test-kit/jail/warm";
import { one } from "./python-finalizers.ts";

const NOISY = `
import os
class Noisy:
    def __init__(self, name): self.name = name
    def __del__(self, write=os.write): write(1, f"del {self.name}\\n".encode())
`;

/** What standard output is when the interpreter flushes it for the last time. */
const STREAMS: Record<string, PythonJob> = {
  "standard output is closed": one("import sys; print('said'); sys.stdout.close()"),
  "standard error is closed": one("import sys; sys.stderr.close(); print('said')"),
  "both streams are closed, and an exception is uncaught": one(
    "import sys; sys.stdout.close(); sys.stderr.close(); 1 / 0",
  ),
  "standard output is closed, with an exit code": one("import sys; sys.stdout.close(); sys.exit(7)"),
  "standard output is None": one("import sys; sys.stdout = None; print('lost'); sys.exit(3)"),
  "the streams are deleted": one("import sys; del sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__"),
  "descriptor 1 is closed": one("import os; os.close(1)"),
  "descriptor 1 is closed, with output to flush": one("import os; print('lost'); os.close(1)"),
  "descriptor 1 is closed, with output to flush and an exit code": one(
    "import os, sys; print('lost'); os.close(1); sys.exit(4)",
  ),
  "the buffer of standard output is detached": one("import sys; print('said'); sys.stdout.detach()"),
  "standard output is a full device": one(
    "import os, sys; print('x' * 9); full = os.open('/dev/full', os.O_WRONLY) if os.path.exists('/dev/full') else os.open('main.py', os.O_RDONLY); os.dup2(full, 1)",
  ),
  "standard output is a pipe that nobody reads": one(
    "import os; r, w = os.pipe(); os.dup2(w, 1); os.close(r); os.close(w); print('lost')",
  ),
  "a pipe that is full": one(
    "import fcntl, os; r, w = os.pipe(); fcntl.fcntl(w, fcntl.F_SETFL, os.O_NONBLOCK); os.dup2(w, 1); print('x' * (1 << 20), end='')",
  ),
  "a flush that fails": one(`
import sys
class Stream:
    def __init__(self, stream): self.stream = stream
    def write(self, text): return self.stream.write(text)
    def flush(self): raise OSError("no flush")
sys.stdout = Stream(sys.stdout); print("said")
`),
  "a flush that imports and counts": one(`
import sys
class Stream:
    count = 0
    def __init__(self, stream): self.stream = stream
    def write(self, text): return self.stream.write(text)
    def flush(self):
        import json, re
        self.count += 1; self.stream.write(json.dumps({"flush": self.count, "same": re.compile is regular.compile}) + "\\n"); self.stream.flush()
import re as regular
sys.stdout = Stream(sys.stdout); print("said")
`),
  "output of the C library": one(
    "import ctypes; ctypes.CDLL(None).printf(b'from C'); print('from Python', flush=True)",
  ),
};

const EXITS: Record<string, PythonJob> = {
  "an exit code below zero": one("import sys; sys.exit(-1)"),
  "an exit code that is not a number": one("import sys; sys.exit(1.5)"),
  "an exit with a tuple": one("import sys; sys.exit((1, 'two'))"),
  "an exit with None in an object": one("raise SystemExit(None)"),
  "an exit with an object whose text fails": one(`
class Broken:
    def __str__(self): raise ValueError("no text")
raise SystemExit(Broken())
`),
  "an exit with a code of its own class": one(`
class Exit(SystemExit): code = 5
raise Exit("ignored")
`),
  "an exit in an exit": one(`
import atexit, sys
def late(): print("late"); sys.exit(9)
atexit.register(print, "last"); atexit.register(late)
sys.exit(3)
`),
  "a function registered while functions are called": one(`
import atexit
def late(): print("late"); atexit.register(print, "later")
atexit.register(late)
`),
  "a function that raises, and one that ends the process": one(`
import atexit, os
def end(): print("ends", flush=True); os._exit(8)
def bad(): raise ValueError("bad")
atexit.register(print, "never"); atexit.register(end); atexit.register(bad)
`),
  "functions that need modules": one(`
import atexit
def late():
    import collections, json, sys
    print(json.dumps([type(sys.modules["json"]).__name__, type(sys.modules["re"]).__name__, json.loads is before, collections.deque([1])[0]]))
import json, re
before = json.loads
atexit.register(late)
`),
  "sys.exit in a thread": one(`
import sys, threading
thread = threading.Thread(target=sys.exit, args=(4,)); thread.start(); thread.join(); print("goes on")
`),
  "os._exit in a thread": one(`
import os, threading, time
print("said", flush=True); threading.Thread(target=os._exit, args=(6,)).start(); time.sleep(60)
`),
  "a thread that starts others when the main thread is over": one(`
import threading, time
def last(): time.sleep(0.02); print("last")
def late(): time.sleep(0.02); threading.Thread(target=last).start(); print("late")
threading.Thread(target=late).start()
`),
  "a daemon thread in the middle of its work": one(`
import threading, time
busy = threading.Event()
def work():
    busy.set()
    while True: sum(range(100))
threading.Thread(target=work, daemon=True).start(); busy.wait(); print("main done")
`),
  "an exception in a hook for exceptions": one(`
import sys
def hook(*args): raise LookupError("in the hook")
sys.excepthook = hook; 1 / 0
`),
  "no hook for exceptions": one("import sys; del sys.excepthook; 1 / 0"),
  "an interrupt of a class of its own": one("class Own(KeyboardInterrupt): pass\nraise Own('mine')"),
  "an interrupt that a hook reports": one(`
import sys
def hook(kind, error, trace): print("hook", kind.__name__)
sys.excepthook = hook
raise KeyboardInterrupt
`),
  "an interrupt, with output that cannot be flushed": one(
    "import os; print('lost'); os.close(1); raise KeyboardInterrupt",
  ),
  "an interrupt in a function that is called at the end": one(`
import atexit, os, signal
def late(): os.kill(os.getpid(), signal.SIGINT); sum(range(1000))
atexit.register(late)
`),
  "an interrupt that was handled before another error": one(`
import code, sys
try: raise KeyboardInterrupt
except KeyboardInterrupt: print("handled")
1 / 0
`),
  "a signal while functions are called": one(`
import atexit, os, signal
signal.signal(signal.SIGTERM, lambda *args: print("handled"))
atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM))
`),
  "recursion that its end goes on with": one(`
import sys
class Deep:
    def __del__(self):
        try: self.again()
        except RecursionError: sys.__stderr__ and print("too deep", file=sys.__stderr__)
    def again(self): self.again()
kept = Deep(); del kept
def f(): f()
f()
`),
};

const OBJECTS: Record<string, PythonJob> = {
  "a coroutine in a global that nobody awaits": one("async def work(): pass\nkept = work()"),
  // Modules that a warning shows more with.
  "a coroutine in a ring that nobody awaits": one(
    "import linecache, tracemalloc, warnings\nasync def work(): pass\nbox = [work()]; box.append(box); del box",
  ),
  "a task that is never finished": one(`
import asyncio
async def work(): await asyncio.sleep(60)
loop = asyncio.new_event_loop(); task = loop.create_task(work(), name="mine"); loop.run_until_complete(asyncio.sleep(0)); print("over")
`),
  "an asynchronous generator that is left": one(`
import asyncio
async def steps():
    try: yield 1
    finally: print("left")
async def main(): return await anext(kept)
kept = steps(); print(asyncio.run(main()))
`),
  "finalizers of objects of another module": {
    files: {
      "main.py":
        "import helper\nkept = helper.Noisy('global'); other = helper.shared; helper.mine = helper.Noisy('its own')\n",
      "helper.py": `${NOISY}shared = Noisy("shared")\n`,
    },
  },
  "finalizers that import, without a function in the main module": {
    files: {
      "main.py": "import helper, json, logging\nkept = helper.Late()\n",
      "helper.py": `class Late:
    def __del__(self):
        import json, logging
        logging.warning("gone %s", json.dumps([1]))
`,
    },
  },
  "finalizers of a ring that import": one(`
import json as loaded, logging
class Late:
    def __del__(self):
        import json, logging, bisect, uuid
        logging.warning("gone %s %s %s", json.dumps([1]), json.dumps is loaded.dumps, type(json).__name__ in ("module", "ModuleProxy"))
logging.basicConfig(format="mine %(message)s")
ring = Late(); ring.self = ring; del ring
`),
  "an object in a module of the library": one(`${NOISY}
import json, functools
json.kept = Noisy("in json"); functools.kept = Noisy("in functools")
`),
  "objects in containers that a library keeps": one(`${NOISY}
import json
json.kept = [(1, {"key": {Noisy("in a set")}})]
`),
  "a container of the program's own class that a library keeps": one(`
import json
class Kept(list):
    def __del__(self, print=print): print("kept is gone")
json.kept = Kept([1])
`),
  "a file with output in a container that a library keeps": {
    files: {
      "main.py": `import json\njson.kept = ([open("left.txt", "w")],)\njson.kept[0][0].write("left")\n`,
    },
  },
  "an object of a library with a value of the program's own in it": one(`${NOISY}
import decimal, fractions, types
left = types.SimpleNamespace(a=fractions.Fraction(1, 2), b=decimal.Context(), kept=Noisy("in a namespace"))
`),
  "an object of a library with a file that has output": {
    files: {
      "main.py": `import types
left = types.SimpleNamespace(file=open("left.txt", "w"))
left.file.write("left")
`,
    },
  },
  "a class of the library that gets a finalizer of the library": one(
    "import fractions\nleft = fractions.Fraction(1, 2)\nfractions.Fraction.__del__ = print",
  ),
  "an object of a class that is derived from a library's": one(
    "import fractions\nclass Mine(fractions.Fraction):\n    def __del__(self, print=print): print('gone')\nleft = Mine(1, 2)",
  ),
  "a class whose metaclass has a hash": one(`
class Meta(type):
    def __hash__(self, print=print): print("hashed"); return 1
class Left(metaclass=Meta): pass
left = Left()
`),
  "a weak reference that calls a function of the library": one(
    "import weakref\nleft = {1}\nwatch = weakref.ref(left, print)",
  ),
  "a weak reference to an object of the library": one(
    "import collections, weakref\nleft = collections.OrderedDict(); watch = weakref.ref(left)",
  ),
  "a weak reference that calls an object of the library": one(
    "import functools, weakref\nleft = {1}\nwatch = weakref.ref(left, functools.partial(print, 'gone'))",
  ),
  "a function of the library that the collector calls": one("import gc; gc.callbacks.append(print)"),
  "a generator that is not at its end": one(
    "def rest(print=print):\n    try: yield 1\n    finally: print('closed')\nleft = rest(); next(left)",
  ),
  "a generator of the library's, with a file": one(
    "import contextlib\n@contextlib.contextmanager\ndef opened():\n    yield 1\nleft = opened(); left.__enter__()",
  ),
  "a function that the collector calls": one(
    "import gc; gc.callbacks.append(lambda phase, info, print=print: print(phase))",
  ),
  "a function of the library that is replaced": one(`
import json, atexit, warnings
json.dumps = lambda value: "mine"
warnings.showwarning = lambda *args, print=print: print("shown", args[0])
def late():
    import json
    print(json.dumps(1)); warnings.warn("late")
atexit.register(late)
class Late:
    def __del__(self, warn=warnings.warn): warn("later")
ring = Late(); ring.self = ring; del ring
`),
  "finalize of weakref, before and after atexit": one(`
import atexit, weakref
class Held: pass
held = Held(); other = Held()
atexit.register(print, "registered before"); weakref.finalize(held, print, "finalized")
quiet = weakref.finalize(other, print, "quiet"); quiet.atexit = False
atexit.register(print, "registered after")
`),
  "a temporary directory and a temporary file": one(`
import atexit, os, tempfile
folder = tempfile.TemporaryDirectory(dir="."); file = tempfile.NamedTemporaryFile(dir=".")
atexit.register(lambda: print(os.path.isdir(folder.name), os.path.exists(file.name)))
`),
  "handlers of logs": one(`
import logging, sys
class Own(logging.Handler):
    def emit(self, record): print("emits", record.getMessage())
    def flush(self): print("flushes")
    def close(self): print("closes"); super().close()
logging.getLogger("mine").addHandler(Own()); logging.getLogger("mine").warning("once")
logging.getLogger().addHandler(logging.FileHandler("log.txt")); logging.error("kept")
`),
  "a pool of processes that is left": one(`
import multiprocessing as mp
if __name__ == "__main__":
    pool = mp.Pool(2); print(pool.map(abs, [-1, -2]))
`),
  "processes of multiprocessing that go on": one(`
import multiprocessing as mp, time
def work(go): go.recv(); print("child", flush=True)
if __name__ == "__main__":
    mine, other = mp.Pipe()
    mp.Process(target=work, args=(other,)).start(); mp.Process(target=time.sleep, args=(60,), daemon=True).start()
    print("parent", flush=True); mine.send("go")
`),
  "a pool of threads that is left": one(`
from concurrent.futures import ThreadPoolExecutor
import time
pool = ThreadPoolExecutor(2); pool.submit(lambda: (time.sleep(0.02), print("done")))
`),
  "a process that is not waited for": one(
    "import linecache, subprocess, tracemalloc, warnings\nwarnings.simplefilter('always')\nchild = subprocess.Popen(['sleep', '0.2'])\n",
  ),
  "files that are left open, with warnings": one(
    "import warnings\nwarnings.simplefilter('always')\nkept = open('left.txt', 'w'); kept.write('text')\ndef f(): pass\n",
  ),
  "a finalizer that fails when the module is taken apart": one(`
class Broken:
    def __del__(self): missing.name
kept = Broken(); box = [Broken()]; box.append(box)
`),
  "finalizers in their order": one(`${NOISY}
first = Noisy("first"); _hidden = Noisy("hidden"); last = Noisy("last")
box = [Noisy("in a ring")]; box.append(box); del box, Noisy
`),
  "a codec and an error handler of its own": one(`${NOISY}
import codecs
kept = Noisy("codec")
codecs.register(lambda name, kept=kept: None); codecs.register_error("mine", lambda error, kept=kept: ("", error.end)); del kept
`),
  "a fork whose child ends by itself": one(`${NOISY}
import os, sys
kept = Noisy("of each")
child = os.fork()
if child: os.waitpid(child, 0)
`),
};

export const ENDS: Record<string, PythonJob> = { ...STREAMS, ...EXITS, ...OBJECTS };
