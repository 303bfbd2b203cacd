import { describe, expect, it } from "vitest";
import { python, stdoutOf, tools } from "./support/python-tools.ts";
import { type ToolProgram, together } from "./support/tools.ts";

describe("a tool in a running event loop", () => {
  const loop = (code: string, job: Partial<ToolProgram> = {}) =>
    stdoutOf(code, { ...job, tools: { ...tools, together: together(50), pair: together(2) } });

  it("is one of fifty outstanding calls of a gather, which keeps the order", async () => {
    expect(
      await loop(
        "r = await asyncio.gather(*[together(n=n) for n in range(50)])\nprint(r == list(range(50)), type(r[1]))",
      ),
    ).toBe("True <class 'int'>\n");
  });

  it("is taken by await, create_task, ensure_future, wait_for, TaskGroup, as_completed and timeout", async () => {
    expect(
      await loop(`
import inspect
async def main():
    print(await value(value=1), await asyncio.create_task(value(value=2)), await asyncio.wait_for(value(value=3), 5))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(pair(n=n)) for n in range(2)]
    print([task.result() for task in tasks], await asyncio.ensure_future(value(value=4)))
    print(sorted([await done for done in asyncio.as_completed([pair(n=n) for n in range(2)])]))
    done, _ = await asyncio.wait([asyncio.create_task(value(value=5))])
    print(done.pop().result(), await asyncio.to_thread(value, value=6))
    print(await asyncio.gather(fails(), value(value=7), return_exceptions=True))
    both = value(value=8)
    print(await both, await both, asyncio.iscoroutine(both), inspect.isawaitable(both))
    shared = value(value=9)
    print(await asyncio.gather(asyncio.create_task(wait(shared)), asyncio.create_task(wait(shared))))
async def wait(thing): return await thing
asyncio.run(main())
`),
    ).toBe(
      "1 2 3\n[0, 1] 4\n[0, 1]\n5 6\n[ToolExecutionError('out of stock: é'), 7]\n8 8 True True\n[9, 9]\n",
    );
  });

  it("becomes its value at first use", async () => {
    expect(
      await loop(`
import copy, pickle
async def main():
    d, n, s, l = value(value={"a": [1], "b": None}), value(value=5), value(value="5 é"), value(value=[3, 1, 2])
    print(d["a"], d.get("b"), len(d), "a" in d, sorted(d), {**d}, dict(d), isinstance(d, dict), d == {"a": [1], "b": None}, bool(value()))
    print(n + 1, 1 + n, n - 1, 10 - n, n * 2, n / 2, n // 2, 2 ** n, n ** 2, n % 3, -n, abs(n), n < 6, 4 < n, n == 5, int(n), float(n), round(n), divmod(n, 2), "abcdef"[n], {5: "x"}[n], sum([n, n]), max(n, 1))
    print(s, f"{s:>5}", s + "!", "<" + s, s.upper(), s[0], str(s), repr(s), "%s" % s, hash(s) == hash("5 é"), s in {"5 é"}, s.split())
    print(sorted(l), l[0], l[1:], [*l], list(reversed(l)), l + [4], 3 in l, isinstance(l, list), l.index(1))
    d["c"] = 1; del d["a"]; l.append(9); print(d, l)
    print(json.dumps(d), json.dumps([l, {"k": s}], indent=0), pickle.loads(pickle.dumps(d)), copy.deepcopy(d), copy.copy(l))
    print((await anything(got=d))["got"], await anything(all=[n, s]))
    try: print(fails() + 1)
    except ToolExecutionError as e: print("caught", e)
asyncio.run(main())
`),
    ).toBe(
      [
        "[1] None 2 True ['a', 'b'] {'a': [1], 'b': None} {'a': [1], 'b': None} True True False",
        "6 6 4 5 10 2.5 2 32 25 2 -5 5 True True True 5 5.0 5 (2, 1) f x 10 5",
        "5 é   5 é 5 é! <5 é 5 É 5 5 é '5 é' 5 é True True ['5', 'é']",
        "[1, 2, 3] 3 [1, 2] [3, 1, 2] [2, 1, 3] [3, 1, 2, 4] True True 1",
        "{'b': None, 'c': 1} [3, 1, 2, 9]",
        "{\"b\": null, \"c\": 1} [\n[\n3,\n1,\n2,\n9\n],\n{\n\"k\": \"5 \\u00e9\"\n}\n] {'b': None, 'c': 1} {'b': None, 'c': 1} [3, 1, 2, 9]",
        "{'b': None, 'c': 1} {'all': [5, '5 é']}",
        "caught out of stock: é\n",
      ].join("\n"),
    );
  });

  it("is issued when it is called, awaited or not, also when its task is cancelled", async () => {
    const { calls, stderr, stdout } = await python(
      "anything(n=1)\nt = asyncio.create_task(never(n=2))\nawait asyncio.sleep(0.01)\nt.cancel()\ntry: await t\nexcept asyncio.CancelledError: print('cancelled')\nawait anything(n=3)",
      { tools: { ...tools, never: () => new Promise(() => {}) } },
    );
    expect({ stdout, stderr }).toEqual({ stdout: "cancelled\n", stderr: "" });
    expect(calls.map(({ input }) => input.n)).toEqual([1, 2, 3]);
  });
});
