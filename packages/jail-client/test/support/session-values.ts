/** Programs of sessions, which use what the ones before them left. */

/** Ten cells of a notebook; each prints what the ones before left. */
export const NOTEBOOK: readonly (readonly [string, string])[] = [
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

/** What each pair prints must be the same in one program and in two of a session: definitions, uses, output. */
export const KEPT: Record<string, readonly [string, string, string]> = {
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
