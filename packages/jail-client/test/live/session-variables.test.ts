import { Jaild } from "@svc/test-kit/jail/jaild";
import { NAMES } from "@svc/test-kit/jail/zygotes";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LAST, runStep, SAVED, Session } from "../support/session.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 4, zygotes: true });
  await jaild.warm();
}, 90_000);
afterAll(() => jaild.stop());

const WAYS = [undefined, ...NAMES];

/** Ten cells of a notebook; each prints what the ones before left. */
const NOTEBOOK: readonly (readonly [string, string])[] = [
  ["import numpy as np, math\nxs = np.arange(5)\nk = 3\nprint(xs.sum())", "10\n"],
  ["def scaled(v): return v * k\nprint(scaled(2), math.pi > 3)", "6 True\n"],
  ["k = 10\nprint(scaled(2))", "20\n"],
  [
    "def fact(n): return 1 if n < 2 else n * fact(n - 1)\nhalf = lambda v: v / 2\nprint(fact(5), half(3))",
    "120 1.5\n",
  ],
  [
    "class Point:\n    made = 0\n    def __init__(self, x): self.x = x; Point.made += 1\n    def __eq__(self, other): return self.x == other.x\np = Point(4)\nprint(fact(6), Point.made)",
    "720 1\n",
  ],
  ["q = Point(4)\nprint(p == q, type(p) is Point, isinstance(p, Point), Point.made)", "True True True 2\n"],
  [
    "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2], 'b': ['x', None]})\nview = df\nprint(len(df))",
    "2\n",
  ],
  ["df['c'] = df.a * half(k)\nprint(view.c.tolist(), view is df, df.b.isna().sum())", "[5.0, 10.0] True 1\n"],
  [
    "del p, q, k\nprint('p' in globals(), sorted(n for n in globals() if n[0] != '_'))",
    `False ${list("Point df fact half math np pd scaled view xs")}\n`,
  ],
  ["print('k' in globals())\nscaled(1)", "False\n"],
];

function list(names: string): string {
  return `[${names
    .split(" ")
    .map((name) => `'${name}'`)
    .join(", ")}]`;
}

describe.each(WAYS)("a notebook of ten programs, zygote %s", (zygote) => {
  it("goes on with the variables of each one before", async () => {
    const session = new Session(jaild, zygote);
    for (const [code, out] of NOTEBOOK.slice(0, -1)) expect(await session.print(code)).toBe(out);
    const last = await session.step(NOTEBOOK.at(-1)?.[0] ?? "");
    expect({ out: last.out, exitCode: last.end.exitCode }).toEqual({ out: "False\n", exitCode: 1 });
    expect(last.err).toBe(`Traceback (most recent call last):
  File "/mnt/data/main.py", line 2, in <module>
    scaled(1)
    ~~~~~~^^^
  File "<earlier run>", line 1, in scaled
NameError: name 'k' is not defined
`);
    expect(last.header?.dropped).toEqual([]);
    expect(last.header?.modules.sort()).toEqual(["numpy", "pandas"]);
    expect(Object.keys(last.files)).toEqual([SAVED]);
    expect(last.startedWarm).toBe(zygote !== undefined && zygote !== "python");
  });
});

/** What each pair prints must be the same in one program and in two of a session: definitions, uses, output. */
const KEPT: Record<string, readonly [string, string, string]> = {
  "two names of one list": [
    "a = b = [1]; c = {'a': a}",
    "a.append(2); print(b, c, a is b is c['a'])",
    "[1, 2] {'a': [1, 2]} True\n",
  ],
  "a list in itself": ["a = []; a.append(a)", "print(a[0] is a)", "True\n"],
  "a function that changes globals": [
    "n = 0\ndef count():\n    global n\n    n += 1",
    "count(); count(); print(n, count.__globals__ is globals(), __builtins__)",
    "2 True <module 'builtins' (built-in)>\n",
  ],
  "functions that call each other": [
    "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)",
    "print(even(10))\ndef odd(n): return 'new'\nprint(even(10))",
    "True\nnew\n",
  ],
  "a closure": [
    "def counter():\n    n = 0\n    def step():\n        nonlocal n\n        n += 1\n        return n\n    return step\none = counter(); one()\nboth = (one, one)",
    "print(one(), both[1](), both[0] is one)",
    "2 3 True\n",
  ],
  "a decorated function, with defaults, annotations and attributes": [
    "import functools\n@functools.cache\ndef slow(n: int, *, plus: int = 2) -> int:\n    'text'\n    return n + plus\ndef own(): pass\nown.note = 1",
    "print(slow(1), slow.__doc__, slow.__wrapped__.__kwdefaults__, own.note)",
    "3 text {'plus': 2} 1\n",
  ],
  "a class with all kinds of members": [
    "class A:\n    __slots__ = ('x',)\n    def __init__(self): self.x = 1\n    @property\n    def double(self): return self.x * 2\n    @staticmethod\n    def s(): return 's'\n    @classmethod\n    def c(cls): return cls.__name__\nclass B(A):\n    def __init__(self): super().__init__(); self.x = 5\nb = B()",
    "print(b.double, b.s(), b.c(), B().double, B.__mro__[1] is A, B.__module__)",
    "10 s B 10 True __main__\n",
  ],
  "an abstract class": [
    "import abc\nclass A(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...\nclass B(A):\n    def f(self): return 1\nb = B()",
    "print(isinstance(b, A), b.f())\ntry: A()\nexcept TypeError: print('abstract')",
    "True 1\nabstract\n",
  ],
  "a dataclass, and one that inherits it later": [
    "from dataclasses import dataclass, field\n@dataclass\nclass P:\n    x: int\n    ys: list = field(default_factory=list)\np = P(1)",
    "import dataclasses\n@dataclass\nclass Q(P):\n    z: int = 3\nprint(p, P(2).ys, Q(1), dataclasses.replace(p, x=5), dataclasses.fields(P)[0].default is dataclasses.MISSING)",
    "P(x=1, ys=[]) [] Q(x=1, ys=[], z=3) P(x=5, ys=[]) True\n",
  ],
  "an enum": [
    "import enum\nclass C(enum.Enum):\n    RED = 1\nr = C.RED",
    "print(r is C.RED, C(1) is r, r)",
    "True True C.RED\n",
  ],
  "a named tuple": [
    "from collections import namedtuple\nfrom typing import NamedTuple\nN = namedtuple('N', 'a b')\nclass T(NamedTuple):\n    a: int\n    b: int = 2\nn = N(1, 2); t = T(1)",
    "print(n, n._replace(a=3), N(5, 6), t, T(7), isinstance(n, N))",
    "N(a=1, b=2) N(a=3, b=2) N(a=5, b=6) T(a=1, b=2) T(a=7, b=2) True\n",
  ],
  "an old object of a class that was defined again": [
    "class A:\n    v = 1\nold = A()\nclass A:\n    v = 2\nnew = A()",
    "print(old.v, new.v, type(old) is A, type(new) is A)",
    "1 2 False True\n",
  ],
  "modules under other names": [
    "import numpy as np, os.path as p, concurrent.futures\ndef pool(): return concurrent.futures.ThreadPoolExecutor.__name__",
    "print(np.__name__, p.join('a', 'b'), pool())",
    "numpy a/b ThreadPoolExecutor\n",
  ],
  "values of the standard library": [
    "import collections, datetime, decimal, fractions, pathlib, random, re, uuid\nv = [collections.Counter('aab'), collections.defaultdict(list, a=[1]), collections.deque([1], 3), datetime.date(2024, 1, 2), decimal.Decimal('1.5'), fractions.Fraction(1, 3), pathlib.Path('a'), re.compile('a+'), {1, 2}, frozenset([3]), b'x', bytearray(b'y'), 1j, range(3), slice(1, 2), ..., None]\nr = random.Random(1); r.random(); expected = r.getstate()",
    "print(v)\nprint(r.getstate() == expected)",
    "[Counter({'a': 2, 'b': 1}), defaultdict(<class 'list'>, {'a': [1]}), deque([1], maxlen=3), datetime.date(2024, 1, 2), Decimal('1.5'), Fraction(1, 3), PosixPath('a'), re.compile('a+'), {1, 2}, frozenset({3}), b'x', bytearray(b'y'), 1j, range(0, 3), slice(1, 2, None), Ellipsis, None]\nTrue\n",
  ],
  "an exception that was caught": [
    "class Own(Exception): pass\ntry: raise Own('a') from KeyError('k')\nexcept Own as error: e = error",
    "print(repr(e), type(e) is Own)",
    "Own('a') True\n",
  ],
  "the standard streams": ["import sys\nout = sys.stdout", "import sys\nprint(out is sys.stdout)", "True\n"],
  "a series, an index, a category": [
    "import pandas as pd\ns = pd.Series([1, 2], index=pd.date_range('2024-01-01', periods=2), name='n')\nc = pd.Categorical(['a', 'b', 'a'])\ng = s.index",
    "print(s.sum(), s.index is g, c.codes.tolist(), s.name)",
    "3 True [0, 1, 0] n\n",
  ],
  "arrays of every layout": [
    "import numpy as np\na = np.arange(6).reshape(2, 3); f = np.asfortranarray(a); t = a[:, ::2]; o = np.array([1, 'x'], object); r = np.zeros(2, [('a', 'i4')]); m = np.ma.array([1, 2], mask=[0, 1]); rng = np.random.default_rng(1); rng.random()",
    "print(a.tolist(), f.flags.f_contiguous, t.tolist(), o, r, m, a.flags.writeable); a[0] = 9; print(rng.random())",
    "[[0, 1, 2], [3, 4, 5]] True [[0, 2], [3, 5]] [1 'x'] [(0,) (0,)] [1 --] True\n0.9504636963259353\n",
  ],
  "a model of scikit-learn": [
    "from sklearn.linear_model import LinearRegression\nmodel = LinearRegression().fit([[1], [2]], [2, 4])",
    "print(round(model.predict([[3]])[0], 6))",
    "6.0\n",
  ],
  "figures, with their numbers, and which is the current one": [
    "import matplotlib.pyplot as plt\nplt.figure(7); plt.plot([1, 2])\nfig, ax = plt.subplots(); closed = plt.figure(); plt.close(closed)\nplt.figure(7)",
    "print(plt.get_fignums(), plt.gcf().number, fig.number, ax.figure is fig, len(plt.gca().lines), plt.fignum_exists(fig.number), closed.number)\nplt.show()\nimport os; print(sorted(os.listdir('.')))",
    "[7, 8] 7 8 True 1 True 9\n['.session_state.last', 'main.py', 'plot_1.png', 'plot_2.png']\n",
  ],
  "a module beside the program": [
    "open('helper.py', 'w').write('class H:\\n    v = 1\\ndef f(): return 2\\n')\nimport helper\nfrom helper import f\nh = helper.H()",
    "print(helper.f is f, f(), type(h) is helper.H)",
    "True 2 True\n",
  ],
  "many variables": [
    "for i in range(1000): globals()[f'v{i}'] = [i]",
    "print(sum(globals()[f'v{i}'][0] for i in range(1000)))",
    "499500\n",
  ],
};

describe.each([undefined, "python-data"])("kept, zygote %s:", (zygote) => {
  it.each(Object.entries(KEPT))("%s", async (_name, [first, second, out]) => {
    const session = new Session(jaild, zygote);
    const { err, header } = await session.step(first);
    expect({ err, dropped: header?.dropped }).toEqual({ err: "", dropped: [] });
    expect(await session.print(second)).toBe(out);
    // What was restored is saved again.
    expect(await session.print(first.startsWith("open(") ? "pass" : "import sys; sys.stdout.flush()")).toBe(
      "",
    );
  });
});

describe("what cannot be kept is told, and the rest is kept", () => {
  it("of each kind", async () => {
    const session = new Session(jaild);
    const { header, err } = await session.step(`
import asyncio, queue, socket, sqlite3, subprocess, threading, numpy as np
opened = open("/etc/passwd"); written = open("x", "wb"); lock = threading.Lock(); thread = threading.Thread()
generator = (n for n in "ab"); connection = sqlite3.connect(":memory:"); sock = socket.socket(socket.AF_UNIX); q = queue.Queue()
view = memoryview(b"abc"); frame = __import__("sys")._getframe(); loop = asyncio.new_event_loop(); array = np.arange(3)
both = [array, lock]; after = array
class Refuses:
    def __reduce__(self): raise ValueError("not \\n this one" + "!" * 300)
class Leaves:
    def __reduce__(self): raise SystemExit(9)
class Mute(Exception):
    def __str__(self): raise RuntimeError
class Silent:
    def __reduce__(self): raise Mute
class Deep: pass
refuses, leaves, silent = Refuses(), Leaves(), Silent()
deep = []
for _ in range(100_000): deep = [deep]
`);
    expect(err).toBe("");
    const reasons = Object.fromEntries(header?.dropped.map(({ name, reason }) => [name, reason]) ?? []);
    const cannot = (kind: string) => `cannot pickle '${kind}' object`;
    expect(reasons).toMatchObject({
      opened: cannot("_io.TextIOWrapper"),
      written: "cannot pickle 'BufferedWriter' instances",
      lock: cannot("_thread.lock"),
      generator: cannot("generator"),
      connection: cannot("sqlite3.Connection"),
      sock: cannot("socket"),
      view: cannot("memoryview"),
      frame: cannot("frame"),
      both: cannot("_thread.lock"),
      refuses: `ValueError: not this one${"!".repeat(300)}`.slice(0, 200),
      leaves: "SystemExit: 9",
      silent: "Mute",
      deep: expect.stringContaining("recursion"),
    });
    const names =
      "both connection deep frame generator leaves lock loop opened q refuses silent sock thread view written";
    expect(Object.keys(reasons).sort()).toEqual(names.split(" "));
    expect(await session.print("print(array, after is array, 'both' in globals(), Refuses.__name__)")).toBe(
      "[0 1 2] True False Refuses\n",
    );
  });

  it("when it cannot be loaded, for a module that is gone", async () => {
    const session = new Session(jaild);
    await session.step(
      "open('helper.py', 'w').write('class H: pass')\nimport helper\nfirst = [1]; h = [first, helper.H()]; part = h[1]; last = [first]",
    );
    delete session.files["helper.py"];
    const step = await session.step("print(last, last[0] is first, [n for n in globals() if n[0] != '_'])");
    expect(step.out).toBe("[[1]] True ['first', 'last']\n");
    expect(step.header?.dropped).toEqual([
      { name: "helper", reason: "ModuleNotFoundError: No module named 'helper'" },
      { name: "h", reason: "ModuleNotFoundError: No module named 'helper'" },
      { name: "part", reason: "it shares a value with a variable that could not be loaded" },
    ]);
    expect((await session.step("pass")).header?.dropped).toEqual([]);
  });

  it("in lists of at most a hundred, in a line of at most 64 KiB", async () => {
    const { header } = await runStep(
      jaild,
      `import threading
for i in range(300): globals()[f"lock{i}"] = threading.Lock(); globals()[f"n{i}" + "ü" * 300] = i`,
    );
    expect(header?.names.length).toBeLessThanOrEqual(100);
    expect(header?.dropped.length).toBeGreaterThan(50);
    expect(Math.max(...(header?.names ?? []).map((name) => name.length))).toBe(200);
  });

  it("when there is no room, largest only", async () => {
    const session = new Session(jaild);
    const { header, end } = await session.step("small = 1; large = bytes(3 << 20); also = 'x'", {
      fileBytes: 1 << 20,
    });
    expect(end.exitCode).toBe(0);
    expect(header?.dropped).toEqual([{ name: "large", reason: "OSError: [Errno 27] File too large" }]);
    expect(await session.print("print(small, also)")).toBe("1 x\n");
  });

  it("when the workspace is full, and what fits is kept", async () => {
    const session = new Session(jaild);
    const { header, end } = await session.step(`
small = [1]; large = bytes(1 << 20); also = "x"
with open("filler", "wb", 0) as file:
    try:
        while file.write(bytes(1 << 16)): pass
    except OSError: pass
    file.truncate(file.tell() - (1 << 17))
del file
`);
    expect(end.exitCode).toBe(0);
    expect(header?.dropped).toEqual([
      { name: "large", reason: "OSError: [Errno 28] No space left on device" },
    ]);
    delete session.files.filler;
    expect(await session.print("print(small, also)")).toBe("[1] x\n");
  });

  it("when there is room for nothing: the older variables stay", async () => {
    const session = new Session(jaild);
    await session.step("x = 1");
    const { end, err, files } = await session.step(`
x = 2
with open("filler", "wb", 0) as file:
    for size in (1 << 16, 1):
        try:
            while file.write(bytes(size)): pass
        except OSError: pass
`);
    expect({ exitCode: end.exitCode, err, names: Object.keys(files).sort() }).toEqual({
      exitCode: 0,
      err: "",
      names: [LAST, "filler"],
    });
    delete session.files.filler;
    expect(await session.print("print(x)")).toBe("1\n");
  });

  it("when its code is of another version of Python", async () => {
    const session = new Session(jaild);
    const { out } = await session.step(
      "import importlib.util\nprint(importlib.util.MAGIC_NUMBER.hex())\nx = 1\ndef f(): pass\nclass A:\n    def m(self): pass",
    );
    const magic = Buffer.from(out.trim(), "hex");
    const saved = session.files[SAVED] ?? Buffer.of();
    expect(saved.indexOf(magic)).toBeGreaterThan(0);
    for (let at = saved.indexOf(magic); at !== -1; at = saved.indexOf(magic, at))
      saved[at] = (saved[at] ?? 0) - 1;
    const { header, err } = await session.step("print(x)");
    const reason = "it has code of another version of Python";
    expect(err).toBe("");
    expect(header?.dropped[0]).toEqual({ name: "f", reason });
    expect(header?.dropped.map(({ name }) => name)).toEqual(["f", "A"]);
  });

  it("of figures that only pyplot holds, under a name of their own", async () => {
    const session = new Session(jaild, "python-data");
    const { header } = await session.step(
      "import matplotlib.pyplot as plt, threading\nplt.figure().lock = threading.Lock()\nx = 1",
    );
    expect(header?.dropped).toEqual([
      { name: "matplotlib figures", reason: "cannot pickle '_thread.lock' object" },
    ]);
    expect(await session.print("print(x, plt.get_fignums())")).toBe("1 []\n");
  });

  it("when the time for saving is over, also where program code catches everything once", async () => {
    const session = new Session(jaild);
    const { header, end } = await session.step(
      `
first = [1]
class Slow:
    def __reduce__(self):
        try:
            while True: pass
        except BaseException: pass
        while True: pass
slow = Slow()
later = 2
`,
      { wallMs: 60_000 },
    );
    expect({ cause: end.cause, exitCode: end.exitCode }).toEqual({ cause: "exited", exitCode: 0 });
    expect(header?.names).toEqual(["first", "Slow"]);
    expect(header?.dropped).toEqual(
      ["slow", "later"].map((name) => ({ name, reason: "saving took longer than 10 s" })),
    );
  }, 60_000);
});

describe("variables are saved", () => {
  it.each([
    ["after sys.exit", "x = 1\nimport sys; sys.exit(3)", 3],
    ["after an uncaught exception", "x = 1\nundefined", 1],
    [
      "after SystemExit in a function of atexit, which may change them",
      "import atexit\nx = 0\ndef end():\n    global x\n    x = 1\n    raise SystemExit(4)\natexit.register(end)",
      0,
    ],
    ["after a syntax error, those of the run before", "x = (", 1],
  ])("%s", async (_name, code, exitCode) => {
    const session = new Session(jaild);
    await session.step("x = 1");
    expect((await session.step(code)).end.exitCode).toBe(exitCode);
    expect(await session.print("print(x)")).toBe("1\n");
  });

  it("not by copies of the process", async () => {
    const session = new Session(jaild);
    const out = await session.print(`
import multiprocessing, os, sys
def square(n): return n * n
x = "parent"
if __name__ == "__main__":
    if os.fork() == 0:
        x = "child"
        sys.exit()
    os.wait()
    print(os.path.exists(".session_state.pkl"))
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool: print(method, pool.map(square, [3]))
    print(os.path.exists(".session_state.pkl"))
`);
    expect(out).toBe("False\nfork [9]\nspawn [9]\nforkserver [9]\nFalse\n");
    expect(
      await session.print(
        "print(x, square(2))\nimport multiprocessing\nprint(multiprocessing.get_context('fork').Pool(1).map(square, [4]))",
      ),
    ).toBe("parent 4\n[16]\n");
  });

  it.each([
    ["os._exit", "import os; x = 2; os._exit(5)"],
    ["SIGKILL", "import os; x = 2; os.kill(os.getpid(), 9)"],
    ["another program", "import os; x = 2; os.execv('/bin/true', ['true'])"],
  ])("not after %s: those that the program began with stay under the other name", async (_name, code) => {
    const session = new Session(jaild);
    const before = (await session.step("x = 1")).files[SAVED];
    const { files } = await session.step(code);
    expect(files).toEqual({ [LAST]: before });
    expect(await session.print("print(x)")).toBe("1\n");
  });

  it("and no file is left where there are none", async () => {
    const session = new Session(jaild);
    expect((await session.step("print(1)")).files).toEqual({});
    await session.step("x = 1");
    expect((await session.step("del x")).files).toEqual({});
  });

  it("in the same bytes when nothing changed since they were loaded", async () => {
    const session = new Session(jaild);
    await session.step("import numpy as np\na = [1, 'two']; b = a; n = np.arange(3)\ndef f(x): return x");
    const first = (await session.step("pass")).files[SAVED];
    expect((await session.step("pass")).files[SAVED]?.equals(first ?? Buffer.of())).toBe(true);
  });
});
