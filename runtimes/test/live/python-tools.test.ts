import { describe, expect, it } from "vitest";
import { run } from "./support/program.ts";
import { python, stdoutOf, tools } from "./support/python-tools.ts";
import { brokenAnswers, echo, together } from "./support/tools.ts";

describe("a tool called plainly", () => {
  it("blocks and returns the real value, one call after the other", async () => {
    const { stdout, stderr, calls } = await python(
      "total = 0\nfor i in range(200):\n    total += value(value=i)\nprint(total, type(value(value={'a': 1})))",
    );
    expect({ stdout, stderr }).toEqual({ stdout: "19900 <class 'dict'>\n", stderr: "" });
    expect(calls.map(({ input }) => input.value).slice(0, 200)).toEqual([...Array(200).keys()]);
  });

  it.each([
    ["null", "None"],
    ["true", "True"],
    ["0", "0"],
    ["-1.5", "-1.5"],
    ['"{\\"a\\":1}"', `'{"a":1}'`],
    ['"Köln \\ud83c\\udf89\\u0000"', "'Köln 🎉\\x00'"],
    ["[]", "[]"],
    ['{"a":[1,{"b":null}]}', "{'a': [1, {'b': None}]}"],
  ])("returns %s as %s", async (json, shown) => {
    const answers = { it: () => ({ result: JSON.parse(json) }) };
    expect(await stdoutOf("print(repr(it()))", { tools: answers })).toBe(`${shown}\n`);
  });

  it("works in functions, comprehensions, threads, forked and spawned processes", async () => {
    const code = `
import multiprocessing, os, threading
from concurrent.futures import ThreadPoolExecutor
def double(n):
    def inner():
        return value(value=n) * 2
    return inner()
print([double(n) for n in range(3)])
if __name__ == "__main__":
    print(sum(ThreadPoolExecutor(50).map(lambda n: together(n=n), range(50))))
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(double, [4, 5]))
    if os.fork() == 0:
        print("child", value(value=1), flush=True)
        os._exit(0)
    os.wait()
`;
    const stdout = await stdoutOf(code, { tools: { ...tools, together: together(50) } });
    expect(stdout).toBe(
      "[0, 2, 4]\n1225\nfork [8, 10]\n[0, 2, 4]\nspawn [8, 10]\n[0, 2, 4]\nforkserver [8, 10]\nchild 1\n",
    );
  });

  it("can be handed to asyncio.run in a plain module", async () => {
    expect(
      await stdoutOf(
        "import asyncio\nprint(asyncio.run(value(value=[1])), asyncio.run(value()))\nasync def f(): return 2\nprint(asyncio.run(f()))",
      ),
    ).toBe("[1] None\n2\n");
  });

  it("carries a megabyte both ways and deep values, and refuses more without a call", async () => {
    const { stdout, stderr, calls } = await python(
      [
        "print(len(value(value='é' * 500_000)))",
        "deep = None\nfor _ in range(2_000): deep = [deep]",
        "back = value(value=deep); n = 0\nwhile back: back = back[0]; n += 1\nprint(n)",
        "try: value(value='é' * 600_000)\nexcept ToolExecutionError as e: print(e, e.tool_name, e.call_id)",
      ].join("\n"),
    );
    expect({ stdout, stderr }).toEqual({
      stdout: "500000\n2000\nthe call of value() has 1200042 bytes; at most 1048576 can be sent value None\n",
      stderr: "",
    });
    expect(calls).toHaveLength(2);
  });
});

describe("a tool that fails", () => {
  it("raises ToolExecutionError, which can be caught, with message, tool and call", async () => {
    expect(
      await stdoutOf(
        "value()\ntry:\n    fails(a=1)\nexcept ToolExecutionError as e:\n    print(e, e.tool_name, e.call_id, isinstance(e, Exception))",
      ),
    ).toBe("out of stock: é fails call_002 True\n");
  });

  it("that nobody catches ends the program with a traceback of its own lines alone", async () => {
    for (const call of ["fails()", "await fails()"]) {
      const { stderr, exitCode } = await python(`def f():\n    pass\n\n${call}`);
      expect(stderr.replace(/^ +[~^]+\n/gm, "")).toBe(
        `Traceback (most recent call last):\n  File "/mnt/data/main.py", line 4, in <module>\n    ${call}\nToolExecutionError: out of stock: é\n`,
      );
      expect(exitCode).toBe(1);
    }
  });

  it.each(brokenAnswers)("whose connection is lost after %j fails the same way", async (raw) => {
    const gone = { gone: () => ({ raw }) };
    const { stdout } = await python("try: gone()\nexcept ToolExecutionError as e: print(repr(str(e)))", {
      tools: gone,
    });
    expect(stdout).toMatch(/^'(the connection was lost before the tool answered|\{\})'\n$/);
  });

  it("does not fail when its answer ends with its connection, but when that is no JSON", async () => {
    const answers = Object.fromEntries(
      ["[1]", "[1", "{", ""].map((body, n) => [`t${n}`, () => ({ raw: `HTTP/1.1 200 OK\r\n\r\n${body}` })]),
    );
    const code =
      "print(t0())\nfor t in t1, t2, t3:\n    try: t()\n    except ToolExecutionError as e: print(e)";
    expect(await stdoutOf(code, { tools: answers })).toBe(
      `[1]\n${"the result of the tool is no JSON\n".repeat(3)}`,
    );
  });
});

describe("arguments", () => {
  it("go by position, required ones first, and by keyword, awkward names too", async () => {
    const { calls, stderr } = await python(
      [
        "weather('Rome', 3, 'C')",
        "weather(days=1, city='Rome', from_=2, start_date=4, extra=[5])",
        "weather('Rome', 2, **{'from': 1, 'start-date': 2})",
        "weather(None, days=None, unit=None, extra=None)",
        "anything({'x': 1}); anything(y=None); strict(1, b=2)",
      ].join("\n"),
    );
    expect(stderr).toBe("");
    expect(calls.map(({ input }) => input)).toEqual([
      { city: "Rome", days: 3, unit: "C" },
      { city: "Rome", days: 1, from: 2, "start-date": 4, extra: [5] },
      { city: "Rome", days: 2, from: 1, "start-date": 2 },
      { city: null, days: null, extra: null },
      { x: 1 },
      { y: null },
      { a: 1, b: 2 },
    ]);
  });

  it.each([
    ["weather('Rome')", "weather() is missing required arguments: 'days'"],
    ["weather(1, 2, 3, 4, 5, 6)", "weather() takes at most 5 positional arguments but 6 were given"],
    ["weather(1, 2, city=3)", "weather() got multiple values for argument 'city'"],
    ["weather(1, 2, from_=3, **{'from': 4})", "weather() got multiple values for argument 'from'"],
    ["strict(c=1)", "strict() got an unexpected keyword argument 'c'"],
    ["anything(a={1})", "anything(): argument 'a' cannot be sent as JSON: set is no JSON type; pass a list"],
    [
      "anything(a=[b''])",
      "anything(): argument 'a' cannot be sent as JSON: bytes is no JSON type; decode it, or pass base64 text",
    ],
    [
      "anything(a=float('nan'))",
      "anything(): argument 'a' cannot be sent as JSON: Out of range float values are not JSON compliant: nan",
    ],
    [
      "x = []; x.append(x); anything(a=x)",
      "anything(): argument 'a' cannot be sent as JSON: Circular reference detected",
    ],
    ["anything(a=object())", "anything(): argument 'a' cannot be sent as JSON: object is no JSON type"],
  ])("%s is a TypeError and no call", async (code, message) => {
    const { stdout, calls } = await python(
      `try: ${code.includes(";") ? `\n    ${code}` : code}\nexcept TypeError as e: print(e)`,
    );
    expect({ stdout, calls }).toEqual({ stdout: `${message}\n`, calls: [] });
  });

  it("of other kinds are converted where JSON has the same value", async () => {
    const { calls, stderr } = await python(`
import collections, dataclasses, datetime, decimal, enum, pathlib, types, uuid
import numpy as np, pandas as pd
class Color(enum.Enum): RED = "red"
class Level(enum.IntEnum): LOW = 1
@dataclasses.dataclass
class Point:
    x: int
    at: datetime.date
anything(a=(1, range(2), collections.deque([3]), types.MappingProxyType({"k": 1})), b=Color.RED, c=Level.LOW,
    d=Point(1, datetime.date(2026, 1, 2)), e=decimal.Decimal("1.10"), f=decimal.Decimal("0.12345678901234567890"), g=decimal.Decimal(7),
    h=pathlib.Path("a/b"), i=uuid.UUID(int=1), j=datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc))
anything(a=np.int64(3), b=np.float32(0.5), c=np.array([[1, 2], [3, 4]]), d=np.bool_(True), e=np.datetime64("2026-01-02"), f={"k": [np.float64(2)]})
anything(a=pd.DataFrame({"n": [1, None], "s": ["x", "y"]}), b=pd.Series([1, 2]), c=pd.Timestamp("2026-01-02"), d=pd.NA, e=pd.Index([1]))
anything(**{"key \\ud800": "half \\ud83c", 'q"': "\\n"})
`);
    expect(stderr).toBe("");
    expect(calls.map(({ input }) => input)).toEqual([
      {
        ...{ a: [1, [0, 1], [3], { k: 1 }], b: "red", c: 1, d: { x: 1, at: "2026-01-02" }, e: 1.1 },
        ...{ f: "0.12345678901234567890", g: 7, h: "a/b", i: "00000000-0000-0000-0000-000000000001" },
        j: "2026-01-02T03:04:00+00:00",
      },
      {
        a: 3,
        b: 0.5,
        c: [
          [1, 2],
          [3, 4],
        ],
        d: true,
        e: "2026-01-02",
        f: { k: [2] },
      },
      {
        a: [
          { n: 1, s: "x" },
          { n: null, s: "y" },
        ],
        b: [1, 2],
        c: "2026-01-02T00:00:00",
        d: null,
        e: [1],
      },
      { "key \ud800": "half \ud83c", 'q"': "\n" },
    ]);
  });
});

describe("the program around its tools", () => {
  it("finds its names ready, also in text that is evaluated", async () => {
    expect(
      await stdoutOf(
        "def f(x: Optional[List[int]] = None) -> Dict[str, Any]: return json.dumps(x)\nprint(f([1]), os.getcwd(), sys.argv, eval('Union'), asyncio.sleep.__name__)\nexec('print(asyn'+'cio.Queue)')",
        { args: ["a", "ü"] },
      ),
    ).toBe("[1] /mnt/data ['main.py', 'a', 'ü'] typing.Union sleep\n<class 'asyncio.queues.Queue'>\n");
  });

  it("sees its tools as functions with name, documentation and signature", async () => {
    expect(
      await stdoutOf(
        "import inspect, pickle\nprint(weather.__name__, repr(weather.__doc__), inspect.signature(weather), inspect.isfunction(weather), inspect.signature(strict))\nprint(pickle.loads(pickle.dumps(weather)) is weather)",
      ),
    ).toBe(
      `weather 'What """the sky""" does.\\nIn two lines \\\\N{x}.' (city, days, unit=None, from_=None, start_date=None, **kwargs) True (a=None, b=None)\nTrue\n`,
    );
  });

  it("imports its tools into helper modules from __main__", async () => {
    expect(
      await stdoutOf("import helper\nprint(helper.f())", {
        files: { "helper.py": "from __main__ import value\ndef f(): return value(value=1)" },
      }),
    ).toBe("1\n");
  });

  it("reaches tools of every name, and a tool hides a builtin", async () => {
    const names = ["get-weather v2", "9lives", "class", "ünï.x", "print", "☃", "__name__"];
    const { calls, stderr, stdout } = await python(
      "get_weather_v2(); _9lives(); class_tool(); nx(); print(); tool(); __name___tool(); sys.stdout.write(__name__)",
      { tools: Object.fromEntries(names.map((name) => [name, echo])) },
    );
    expect({ stdout, stderr }).toEqual({ stdout: "__main__", stderr: "" });
    expect(calls.map(({ name }) => name)).toEqual(names);
  });

  it("awaits at top level with its globals, line numbers and exit code", async () => {
    const { stdout, stderr, exitCode } = await python(
      '"""doc"""\nfrom __future__ import annotations\nn = 0\ndef count():\n    global n\n    n += 1\nasync def f():\n    async with asyncio.Lock(): return [x async for x in g()]\nasync def g():\n    yield await value(value=1)\ncount()\nprint(await f(), n, __doc__, """a\n  b""")\nsys.exit(3)',
    );
    expect({ stdout, stderr, exitCode }).toEqual({ stdout: "[1] 1 doc a\n  b\n", stderr: "", exitCode: 3 });
  });

  it.each([
    [
      "module state",
      "import inspect\nprint(__name__, __file__, __doc__, __package__, __spec__, type(__loader__), __loader__.name, __cached__, sys.path, sys.argv)\nclass C: pass\nimport pickle\nprint(type(pickle.loads(pickle.dumps(C()))), inspect.getsource(C), vars(sys.modules['__main__']) is globals())",
    ],
    [
      "an uncaught exception",
      "def f():\n    1 / 0\ntry:\n    f()\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e",
    ],
    ["an exception group", "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])"],
    ["a syntax error", "x = 1\nif x\n    pass"],
    ["await in a plain function", "def f():\n    await x"],
    ["a text as exit status", "sys.exit('failed: ü')"],
    [
      "SystemExit in a thread and atexit",
      "import atexit, threading\natexit.register(print, 'bye')\nthreading.Thread(target=sys.exit).start()\nraise SystemExit(5)",
    ],
    ["an interrupt", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(5)"],
    ["a hook for exceptions", "sys.excepthook = lambda t, v, tb: print(t, v, tb.tb_lineno, tb.tb_next)\n1/0"],
    [
      "an exception in a thread",
      "import threading\ndef f(): 1/0\nt = threading.Thread(target=f, name='t'); t.start(); t.join()",
    ],
    ["an odd source", "# -*- coding: latin-1 -*-\nprint('ok')\r\nprint(2)"],
    ["an empty source", ""],
  ])("behaves as with plain python3: %s", async (_what, code) => {
    const source = code === "" ? code : code.replace(/^(# -\*-.*\n)?/, "$1import os, sys\n");
    const with_ = await python(source);
    const plain = await python(source, { command: ["/usr/bin/python3", "main.py"] });
    expect(with_).toEqual(plain);
  });

  it("runs as before without tools in the real jail", async () => {
    expect(
      (await run("python", { code: "import multiprocessing as m\nprint(m.get_start_method())" })).stdout,
    ).toBe("fork\n");
  });
});
