/** Top-level await without an event loop: no program can tell. */
import { describe, expect, it } from "vitest";
import { echo, fails, runWithTools, type ToolProgram, value } from "./support/tools.ts";

const tools = { anything: echo, value, fails };
const python = (code: string, job: Partial<ToolProgram> = {}) =>
  runWithTools("python", { code, tools, ...job });

/** The modules that a program has imported at its end, and what it printed. */
async function importsOf(code: string, job: Partial<ToolProgram> = {}) {
  const command = ["/usr/bin/python3", "-X", "importtime", "/usr/lib/svc/ptc/prelude.py", "main.py"];
  const { stdout, stderr } = await python(code, { command, ...job });
  return { stdout, modules: [...stderr.matchAll(/^import time:.*\| +(\S+)$/gm)].map(([, name]) => name) };
}

const SAME_EITHER_WAY: Record<string, string> = {
  "one call after the other":
    "total = 0\nfor i in range(5):\n    total += await value(value=i)\nprint(total)",
  "coroutines of its own": `
async def double(n):
    return 2 * await value(value=n)
async def twice(n):
    return await double(await double(n))
print(await twice(3), [await double(n) for n in range(3)])`,
  "calls that are issued before they are awaited":
    "a = value(value=1)\nb = value(value=2)\nprint(await b, await a, await a)",
  "results that are used without await":
    "a = value(value=[1, 2])\nawait value(value=0)\nprint(len(a), a[0] + 1, a == [1, 2])",
  "a failing tool that is caught": `
try:
    await fails()
except ToolExecutionError as error:
    print(error, error.tool_name, error.call_id)`,
  "a failing tool that is not caught": "print('before')\nawait fails()",
  "an exception of its own":
    "import math\nawait value(value=1)\nasync def inner():\n    math.sqrt(-1)\nawait inner()",
  "an exit status": "import sys\nawait value(value=1)\nsys.exit(3)",
  "an awaitable that gives way": `
class Turn:
    def __await__(self):
        yield
        return 7
print(await Turn(), await value(value=8))`,
  "an awaitable that no event loop takes": `
class Strange:
    def __await__(self):
        yield 7
try:
    await Strange()
except RuntimeError as error:
    print(error)
print(await value(value=8))`,
  "a context manager of its own": `
class Context:
    async def __aenter__(self):
        return await value(value=1)
    async def __aexit__(self, *error):
        print("left", error[0], await value(value=2))
        return True
async with Context() as one:
    print(one)
    raise ValueError("x")`,
  "results as JSON":
    "import json\nprint(json.dumps({'a': value(value={'b': 1})}), json.dumps(await value(value=2)))",
  "a coroutine that is never awaited": "async def never():\n    pass\nnever()\nprint(await value(value=1))",
};

describe("top-level await", () => {
  it.each(Object.entries(SAME_EITHER_WAY))(
    "is the same with and without an event loop: %s",
    async (_name, code) => {
      const without = await python(code);
      const withLoop = await python(`${code}\nif False:\n    asyncio`);
      expect(without).toEqual(withLoop);
      expect((await importsOf(code)).modules).not.toContain("asyncio");
    },
  );

  it.each([
    ["names asyncio", "print(await asyncio.wait_for(value(value=1), 9))"],
    ["imports a module that is not known", "import signal\nprint(await value(value=1))"],
    ["imports a helper in the place of a known module", "import csv\nprint(await csv.one())"],
    ["evaluates text", "print(await value(value=eval('1')))"],
    [
      "has asynchronous generators",
      "async def each():\n    yield await value(value=1)\nasync for n in each():\n    print(n)",
    ],
  ])("has an event loop when the program %s", async (_name, code) => {
    const helper = "import asyncio\nasync def one():\n    await asyncio.sleep(0.001)\n    return 1\n";
    const { stdout, modules } = await importsOf(code, {
      files: code.includes("csv") ? { "csv.py": helper } : {},
    });
    expect(stdout).toBe("1\n");
    expect(modules).toContain("asyncio");
  });

  it("does without one only beside modules that never import it", async () => {
    const code = `
import sys
sys.path.append("/usr/lib/svc/ptc")
from _svc_tools.alone import IMPORTS
for name in IMPORTS:
    __import__(name)
print(len(IMPORTS), [name for name in sys.modules if name.startswith(("asyncio", "_asyncio", "concurrent"))])`;
    const { stdout } = await python(code, { command: ["/usr/bin/python3", "main.py"] });
    expect(stdout).toMatch(/^\d\d \[\]\n$/);
  });
});

describe("json that is imported late", () => {
  it("lets a program that imports json later write results that were not awaited", async () => {
    const files = { "helper.py": "def dump(x):\n    import json\n    return json.dumps(x)\n" };
    const code =
      "import helper\nasync def main():\n    print(helper.dump([value(value={'a': 1})]))\nasyncio.run(main())";
    expect((await python(code, { files })).stdout).toBe('[{"a": 1}]\n');
  });
});
