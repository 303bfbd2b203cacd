import { Jaild } from "@svc/test-kit/jail/jaild";
import { NAMES } from "@svc/test-kit/jail/zygotes";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LAST, runStep, SAVED, Session } from "../support/session.ts";
import { KEPT, NOTEBOOK } from "../support/session-values.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 4, zygotes: true });
  await jaild.warm();
}, 90_000);
afterAll(() => jaild.stop());

const WAYS = [undefined, ...NAMES];

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

  const HURRIED = "import _svc_session.save\n_svc_session.save.SECONDS = 5\ndel _svc_session\n";

  it("alone when the time is over, also where taking back takes longer than the time between two interrupts", async () => {
    const session = new Session(jaild);
    const { header, end } = await session.step(`${HURRIED}
words = [str(n) for n in range(300_000)]
class Slow:
    def __reduce__(self):
        while True: pass
slow = Slow()
for i in range(20): globals()[f"later{i}"] = i
del i
`);
    expect({ cause: end.cause, exitCode: end.exitCode }).toEqual({ cause: "exited", exitCode: 0 });
    expect(header?.names).toEqual(["words", "Slow"]);
    expect(header?.dropped.map(({ name }) => name)).toEqual([
      "slow",
      ...Array.from({ length: 20 }, (_, at) => `later${at}`),
    ]);
    expect(await session.print("print(len(words), 'later1' in globals())")).toBe("300000 False\n");
  }, 60_000);

  it("in the time for saving where the program's error does not come to an end with its own text", async () => {
    const session = new Session(jaild);
    const { header, end } = await session.step(`${HURRIED}
class Endless(Exception):
    def __str__(self):
        while True: pass
class Refuses:
    def __reduce__(self): raise Endless
first, refuses = [1], Refuses()
`);
    expect({ cause: end.cause, exitCode: end.exitCode }).toEqual({ cause: "exited", exitCode: 0 });
    expect(header?.dropped).toEqual([{ name: "refuses", reason: "Endless" }]);
    expect(await session.print("print(first)")).toBe("[1]\n");
  }, 60_000);

  it("where it is nested more deeply than the stack allows, whatever limit of recursion the program has set", async () => {
    const session = new Session(jaild);
    const { header, end } = await session.step(`
import sys
sys.setrecursionlimit(1_000_000)
class Node:
    def __init__(self, next): self.next = next
first, last, deep = [1], None, []
for _ in range(200_000): last, deep = Node(last), [deep]
`);
    expect(end).toMatchObject({ cause: "exited", exitCode: 0 });
    expect(header?.dropped.map(({ name }) => name)).toEqual(["last", "deep"]);
    expect(await session.print("print(first)")).toBe("[1]\n");
  }, 60_000);
});

describe("in a workspace of 4 MB", () => {
  let small: Jaild;
  beforeAll(async () => {
    small = await Jaild.start({ slots: 1, args: ["--workspace-bytes", `${4 << 20}`] });
  });
  afterAll(() => small.stop());

  it("what has no room is dropped, and what fits is kept", async () => {
    const session = new Session(small);
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

  it("the older variables stay where there is room for nothing", async () => {
    const session = new Session(small);
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

  it("as arrays of their own where they are views of an array", async () => {
    const session = new Session(jaild);
    await session.step("import numpy as np\na = np.arange(4); view = a[:2]");
    expect(await session.print("view[0] = 9; print(a, view)")).toBe("[0 1 2 3] [9 1]\n");
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

describe("files of the workspace that are named like modules", () => {
  // Everything that loading and saving may need. A plain program of this kind imports none of them.
  const SHADOWS = `
import sys
with open("loaded.txt", "w"): pass
for name in [*sys.stdlib_module_names, "cloudpickle", "_svc_session", "_svc_tools"]:
    with open(name + ".py", "w") as file:
        file.write("open('/mnt/data/loaded.txt', 'a').write(__name__ + '\\\\n')\\nraise SystemExit('shadowed')\\n")
`;

  it("are imported neither to load variables nor to save them", async () => {
    const session = new Session(jaild);
    const first = await session.step(`${SHADOWS}
class Pair:
    def __init__(self): self.both = [1, 2]
add = lambda n: n + rate
rate, pair, log = 2, Pair(), open("loaded.txt")
`);
    expect(first.err).toBe("");
    expect(first.header?.names.sort()).toEqual(["Pair", "add", "name", "pair", "rate", "sys"]);
    const second = await session.step(
      "print(add(1), pair.both, rate)\nsub = lambda n: n - rate\nsys.path += [None, 7, 'no/folder']",
    );
    expect([second.out, second.err]).toEqual(["3 [1, 2] 2\n", ""]);
    expect(second.startedWarm).toBe(false);
    expect(second.header?.names.sort()).toEqual(["Pair", "add", "name", "pair", "rate", "sub", "sys"]);
    expect(session.files["loaded.txt"]?.toString()).toBe("");
  });

  it("are what the program imports, also where its variables needed the other one", async () => {
    const session = new Session(jaild);
    await session.step(
      'open("pickle.py", "w").write("mine = 1")\nopen("json.py", "w").write("mine = 2")\nf = lambda: 3',
    );
    const code = "import pickle, json\nprint(f(), pickle.mine, json.mine)\nclass New: pass\nnew = New()";
    for (let round = 0; round < 2; round++) {
      const { out, err, header } = await session.step(code);
      expect([out, err, header?.dropped]).toEqual(["3 1 2\n", "", []]);
      expect(header?.names).toEqual(expect.arrayContaining(["New", "f", "json", "new", "pickle"]));
    }
  });
});
