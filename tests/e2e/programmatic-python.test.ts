/**
 * Python programs with tools, each the same text on a system that keeps paused programs and on one that runs them again
 * from the top at every resume: the answers are the same, rounds, output and files included.
 */
import { slow } from "@svc/test-kit/jail/slowness";
import { type Api, refTo } from "@svc/test-kit/system/api";
import type { Tools } from "@svc/test-kit/system/programmatic";
import { describe, expect, test } from "vitest";
import {
  ADD,
  JSON_VALUES,
  LOOK_UP,
  TOOL_LIMIT,
  toolProgramRuns,
  VALUES,
} from "./support/tool-program-runs.ts";
import { useSystemOfMode } from "./support/use-system.ts";

describe.each([
  ["live", 200],
  // Each round of a replay begins from the top: its time grows with the square of its calls.
  ["replay", 50],
] as const)("Python, %s", (mode, many) => {
  let api: Api;
  useSystemOfMode(mode, (client) => {
    api = client;
  });

  const { run: python, completed } = toolProgramRuns(() => api, {});

  test("one call", async () => {
    const { stdout, pauses } = await completed("r = await add(a=1, b=2)\nprint(r + 1)", ADD);
    expect(stdout).toBe("4\n");
    expect(pauses.map(({ tool_calls }) => tool_calls)).toEqual([
      [{ id: "call_001", name: "add", arguments: { a: 1, b: 2 }, input: { a: 1, b: 2 } }],
    ]);
  });

  test(
    `${many} calls in a row, each made from the result before it`,
    async () => {
      const code = `total = 0
for i in range(${many}):
    total = add(a=total, b=i + 1)
print(total)`;
      const { stdout, batches, pauses } = await completed(code, ADD);
      expect(stdout).toBe(`${(many * (many + 1)) / 2}\n`);
      expect(batches).toEqual(Array(many).fill(["add"]));
      expect(pauses.map(({ tool_calls }) => tool_calls[0]?.input.a)).toEqual(
        Array.from({ length: many }, (_, i) => (i * (i + 1)) / 2),
      );
    },
    slow(240_000),
  );

  test("call number 201 ends the program, with what it had written until then", async () => {
    const code = `open("made.txt", "w").write("before")
r = await asyncio.gather(*[add(a=i, b=0) for i in range(200)])
print(sum(r), flush=True)
try:
    await add(a=0, b=1)
finally:
    print("never")`;
    const { answer, batches } = await python(code, ADD);
    expect(batches).toEqual([Array(200).fill("add")]);
    expect(answer).toMatchObject({ status: "error", error_type: "tool_limit", error: TOOL_LIMIT });
    expect(answer).toMatchObject({ stdout: "19900\n", stderr: `[sandbox] ${TOOL_LIMIT}\n` });
    expect(answer).toMatchObject({ tool_calls_made: 200, files: [{ name: "made.txt" }] });
  });

  test("a gather of 50 is one round and keeps its order", async () => {
    const code = `rs = await asyncio.gather(*[add(a=i, b=i) for i in range(50)])
print(rs == [2 * i for i in range(50)])`;
    const { stdout, pauses } = await completed(code, ADD);
    expect(stdout).toBe("True\n");
    expect(pauses.map(({ tool_calls }) => tool_calls.map(({ input }) => input.a))).toEqual([
      Array.from({ length: 50 }, (_, i) => i),
    ]);
  });

  test("threads: all that wait at once are one round", async () => {
    const code = `import threading
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(5) as pool:
    print(list(pool.map(lambda i: add(a=i, b=1), range(10))))
found = {}
def work(name):
    found[name] = add(name, add(name, name))
threads = [threading.Thread(target=work, args=(name,)) for name in "xyz"]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(found.items()))`;
    const declared = [{ name: "add", parameters: { properties: { a: {}, b: {} } } }];
    const { stdout, batches } = await completed(code, ADD, { declared });
    expect(stdout).toBe("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n[('x', 'xxx'), ('y', 'yyy'), ('z', 'zzz')]\n");
    expect(batches.map((batch) => batch.length)).toEqual([5, 5, 3, 3]);
  });

  test("calls from nested functions, methods, generators, comprehensions and nested calls", async () => {
    const code = `def outer(n):
    def inner(m):
        return add(a=m, b=1)
    return inner(n) + inner(n + 1)
async def deep(n):
    return 0 if n == 0 else await add(a=await deep(n - 1), b=n)
class Sum:
    def __init__(self): self.total = 0
    def put(self, x): self.total = add(a=self.total, b=x)
def numbers():
    for i in range(3):
        yield add(a=i, b=i)
async def main():
    s = Sum()
    for x in numbers(): s.put(x)
    return s.total
print(outer(1), await deep(4), await main(), [add(a=i, b=1) for i in range(2)])
print(await add(a=await add(a=1, b=2), b=await add(a=3, b=4)))`;
    const { stdout, batches } = await completed(code, ADD);
    expect(stdout).toBe("5 10 6 [1, 2]\n10\n");
    expect(batches.flat()).toHaveLength(17);
  });

  test("loops whose way depends on results", async () => {
    const code = `page, found = 1, []
while page is not None:
    answer = await fetch(page=page)
    found += [item for item in answer["items"] if item % 2 == 0]
    if len(found) > 3:
        break
    page = answer.get("next")
else:
    print("all")
if found and (await check(n=found[-1]))["ok"]:
    print("ok", found)
else:
    print("not ok", found)`;
    const tools: Tools = {
      fetch: ({ page }) => ({ items: [page, page + 1, page * 2], ...(page < 9 ? { next: page + 1 } : {}) }),
      check: ({ n }) => ({ ok: n > 3 }),
    };
    const { stdout, batches } = await completed(code, tools);
    expect(stdout).toBe("ok [2, 2, 2, 4]\n");
    expect(batches.flat()).toEqual(["fetch", "fetch", "check"]);
  });

  test("failures are caught where they happen", async () => {
    const code = `try:
    await get(key="missing")
except ToolExecutionError as e:
    print(type(e).__name__, e, e.tool_name, e.call_id)
print(await asyncio.gather(get(key="a"), get(key="missing"), return_exceptions=True))
for key in ("missing", "b"):
    try:
        print(get(key=key))
        break
    except Exception as e:
        print("again", e)`;
    const { stdout, batches } = await completed(code, LOOK_UP);
    expect(stdout).toBe(
      `ToolExecutionError no key "missing": $& {} get call_001
['value of a', ToolExecutionError('no key "missing": $& {}')]
again no key "missing": $& {}
value of b
`,
    );
    expect(batches.map((batch) => batch.length)).toEqual([1, 2, 1, 1]);
  });

  test("a failure that nobody catches is the program's own end, at its own line", async () => {
    const { answer } = await python('print("before")\n\nawait get(key="x")\nprint("after")', LOOK_UP);
    expect(answer).toMatchObject({ status: "error", error_type: "nonzero_exit", code: 1 });
    expect(answer).toMatchObject({ stdout: "before\n", error: "Sandbox exited with code 1" });
    expect(answer.stderr).toBe(`Traceback (most recent call last):
  File "/mnt/data/main.py", line 3, in <module>
    await get(key="x")
ToolExecutionError: no key "x": $& {}
`);
  });

  test("every JSON value comes as the Python value that it is", async () => {
    const code = `vs = await asyncio.gather(*[value(at=i) for i in range(await size())])
for v in vs:
    print(type(v).__name__, json.dumps(v, ensure_ascii=False, separators=(",", ":")))
print(await nothing())`;
    const { stdout } = await completed(code, VALUES);
    const lines = stdout.split("\n");
    expect(lines.splice(JSON_VALUES.length)).toEqual(["None", ""]);
    expect(lines.map((line) => JSON.parse(line.slice(line.indexOf(" "))))).toEqual(JSON_VALUES);
    expect(lines.map((line) => line.split(" ")[0])).toEqual(
      "NoneType bool bool int int float float int str str str str str list dict list dict".split(" "),
    );
  });

  test("files are read and written around calls, and stored once", async () => {
    const [table, kept] = await api.upload({ "in.csv": "a,1\nb,2\n", "kept.txt": "kept" });
    if (table === undefined || kept === undefined) throw new Error("nothing was uploaded");
    const code = `rows = [line.split(",") for line in open("in.csv").read().split()]
os.makedirs("out")
for name, n in rows:
    with open(f"out/{name}.txt", "x") as f:
        f.write(f"{name}=")
        f.write(str(await add(a=int(n), b=10)))
open("temporary", "x").write("gone before the end")
with open("in.csv", "a") as f:
    f.write(f"sum,{await add(a=1, b=2)}\\n")
os.remove("temporary")
print(sorted(os.listdir()), sorted(os.listdir("out")))`;
    const { answer, stdout } = await completed(code, ADD, { files: [refTo(table), refTo(kept)] });
    expect(stdout).toBe("['in.csv', 'kept.txt', 'main.py', 'out'] ['a.txt', 'b.txt']\n");
    const made = answer.files.filter(({ inherited }) => !inherited);
    const contents = made.map(async (file) => [file.name, (await api.bytes(file)).toString()]);
    expect(await Promise.all(contents)).toEqual([
      ["in.csv", "a,1\nb,2\nsum,3\n"],
      ["out/a.txt", "a=11"],
      ["out/b.txt", "b=12"],
    ]);
    expect(made[0]?.modified_from).toEqual({ id: table.id, storage_session_id: table.storage_session_id });
    expect(answer.files.filter(({ inherited }) => inherited)).toMatchObject([
      { name: "kept.txt", id: kept.id },
    ]);
    expect((await api.bytes(table)).toString()).toBe("a,1\nb,2\n");
    const stored = await api.send("GET", `/files/${answer.session_id}`);
    expect(stored.ok<unknown[]>()).toHaveLength(made.length);
  });

  test("output before, between and after calls appears once and in order", async () => {
    const code = `print("one")
print("error one", file=sys.stderr)
await add(a=1, b=1)
print("two", end="", flush=True)
os.system("echo from a child")
await asyncio.gather(add(a=1, b=2), add(a=1, b=3))
print("three", end="")
print("error two", end="", file=sys.stderr)
await add(a=1, b=4)
print("four")`;
    const { answer, pauses } = await python(code, ADD);
    expect(answer).toMatchObject({ status: "completed", stderr: "error one\nerror two" });
    expect(answer.stdout).toBe("one\ntwofrom a child\nthreefour\n");
    expect(pauses.map(({ partial_stdout, partial_stderr }) => [partial_stdout, partial_stderr])).toEqual([
      ["one\n", "error one\n"],
      ["one\ntwofrom a child\n", "error one\n"],
      ["one\ntwofrom a child\nthree", "error one\nerror two"],
    ]);
    expect(answer.tool_calls_made).toBe(4);
  });

  test("calls that nobody awaits happen once, also at the program's end", async () => {
    const seen: number[] = [];
    const code = `add(a=1, b=0)
task = asyncio.create_task(asyncio.sleep(0))
add(a=2, b=0)
await add(a=3, b=0)
add(a=4, b=0)
print("end")`;
    const { stdout, batches } = await completed(code, { add: ({ a }) => seen.push(a) });
    expect(stdout).toBe("end\n");
    expect(seen).toEqual([1, 2, 3, 4]);
    expect(batches.map((batch) => batch.length)).toEqual([3, 1]);
  });
});
