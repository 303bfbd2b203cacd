/** Top-level await without an event loop, and asyncio that is imported in parts: no program can tell. */
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

const EVERYTHING = `
import socket, typing
async def main():
    results = [await asyncio.to_thread(lambda: 1), await asyncio.wait_for(asyncio.sleep(0, 2), 9)]
    process = await asyncio.create_subprocess_exec("/bin/cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    results.append(await process.communicate(b"three"))
    async def serve(reader, writer):
        writer.write(await reader.readline())
        writer.close()
    async with await asyncio.start_unix_server(serve, "here"):
        reader, writer = await asyncio.open_unix_connection("here")
        writer.write(b"four\\n")
        results.append(await reader.read())
        writer.close()
    done, _ = await asyncio.wait([asyncio.create_task(asyncio.sleep(0, 5))], return_when=asyncio.FIRST_COMPLETED)
    results += [task.result() for task in done]
    try:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(9)
    except TimeoutError as error:
        results.append(repr(error))
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0))
    asyncio.get_running_loop().call_exception_handler({"message": "six"})
    future = asyncio.get_running_loop().create_future()
    future.set_exception(ValueError("never retrieved"))
    del future
    print(results)
    import concurrent.futures, inspect, logging, ssl, subprocess, traceback
    import asyncio.sslproto as tls
    print(asyncio.events.subprocess.Popen is subprocess.Popen, asyncio.base_events.ssl.SSLContext is ssl.SSLContext)
    print(tls.SSLAgainErrors == (ssl.SSLWantReadError, ssl.SSLSyscallError), asyncio.log.logger.name)
    print(inspect.signature(asyncio.timeout), inspect.iscoroutinefunction(main), asyncio.iscoroutinefunction(main))
    print(isinstance(asyncio.wrap_future(concurrent.futures.Future()), asyncio.Future))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        print(await asyncio.get_running_loop().run_in_executor(pool, lambda: 8))
    logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s")
    asyncio.get_running_loop().set_debug(True)
    async def boom():
        raise KeyError("boom")
    print(await asyncio.gather(boom(), asyncio.sleep(0, 9), return_exceptions=True))
`;

describe("asyncio that is imported in parts", () => {
  it("does all that plain asyncio does", async () => {
    const plain = await python(`import asyncio\n${EVERYTHING}\nasyncio.run(main())`, {
      command: ["/usr/bin/python3", "main.py"],
    });
    const inParts = await python(`${EVERYTHING}\nawait main()`);
    expect(plain.stdout).toContain("b'four\\n'");
    expect(inParts.stdout).toBe(plain.stdout);
    expect(inParts.exitCode).toBe(0);
    const shown = (text: string) => text.split("\n").filter((line) => /^[a-z]|Error/.test(line));
    expect(shown(inParts.stderr)).toEqual(shown(plain.stderr));
  });

  it("leaves out what a gather does not need, and the program finds the real modules", async () => {
    const gather = "print(await asyncio.gather(*[value(value=n) for n in range(3)]))";
    const { stdout, modules } = await importsOf(gather);
    expect(stdout).toBe("[0, 1, 2]\n");
    for (const name of ["logging", "ssl", "inspect", "json", "re", "typing"])
      expect(modules).not.toContain(name);
    const real =
      "import logging, typing\nprint(logging.DEBUG, typing.Optional[int], logging.getLogger('a').name)";
    expect((await python(`${gather}\n${real}`)).stdout).toBe("[0, 1, 2]\n10 typing.Optional[int] a\n");
  });

  it("lets a program that imports json later write results that were not awaited", async () => {
    const files = { "helper.py": "def dump(x):\n    import json\n    return json.dumps(x)\n" };
    const code =
      "import helper\nasync def main():\n    print(helper.dump([value(value={'a': 1})]))\nasyncio.run(main())";
    expect((await python(code, { files })).stdout).toBe('[{"a": 1}]\n');
  });
});
