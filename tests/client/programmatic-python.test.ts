/** Python programs of the model that call the host's tools through LibreChat's client. */

import { Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type Service, startService } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Conversation } from "./support/conversation.ts";
import { type HostTool, hostTool } from "./support/host-tool.ts";

let system: Service;

beforeAll(async () => {
  system = await startService(OPEN_LIMITS);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const talk = (...tools: HostTool[]) => new Conversation({ url: system.url, tools });

const square = () =>
  hostTool("square", ({ n }) => ({ n, result: Number(n) ** 2 }), { properties: { n: "number" } });
const failing = () =>
  hostTool("failing", () => {
    throw new Error("the upstream said 'no'");
  });
/** Answers with the JSON text that it is given as a value. */
const value = (options: { mcp?: boolean; pair?: boolean } = {}) =>
  hostTool("value", ({ json }) => JSON.parse(String(json)), { properties: { json: "string" }, ...options });

describe("calls", () => {
  test("one after the other, in loops and functions and on conditions; output comes once and in order", async () => {
    const tool = square();
    const chat = talk(tool);
    const reply = await chat.pythonWithTools(`
print("before")
async def sum_of(numbers):
    total = 0
    for n in numbers:
        answer = await square(n=n)
        print("between", n)
        if answer["result"] > 4:
            total += (await square(n=answer["result"]))["result"]
    return total
print("after", await sum_of([1, 2, 3]))
`);
    expect(reply.text).toBe("stdout:\nbefore\nbetween 1\nbetween 2\nbetween 3\nafter 81");
    expect(tool.inputs).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }, { n: 9 }]);
    expect(chat.requests).toBe(5);
    expect(reply.artifact.session_id).toMatch(/^[\w-]{21}$/);
  });

  test("a gather of 30 is one round, and its results keep their order", async () => {
    const tool = square();
    const chat = talk(tool);
    const reply = await chat.pythonWithTools(`
answers = await asyncio.gather(*(square(n=n) for n in range(30)))
print([answer["result"] for answer in answers])
`);
    expect(reply.text).toBe(`stdout:\n[${Array.from({ length: 30 }, (_, n) => n ** 2).join(", ")}]`);
    expect([chat.requests, tool.peak(), tool.inputs.length]).toEqual([2, 30, 30]);
  });

  test("20 rounds end well; with the 21st the client gives up", async () => {
    const calls = (count: number) => `
for n in range(${count}):
    await square(n=n)
print("done")
`;
    const chat = talk(square());
    expect((await chat.pythonWithTools(calls(20))).text).toBe("stdout:\ndone");
    expect(chat.requests).toBe(21);
    const reply = await chat.pythonWithTools(calls(21));
    expect(reply.failed).toBe(true);
    expect(reply.text).toContain("Exceeded maximum round trips (20)");
  });

  test("200 calls in ten rounds are all made, and one more is refused with a word about it", async () => {
    const rounds = (last: string) => `
for r in range(10):
    await asyncio.gather(*(square(n=20 * r + n) for n in range(20)))
${last}
`;
    const tool = square();
    expect((await talk(tool).pythonWithTools(rounds('print("done")'))).text).toBe("stdout:\ndone");
    expect(tool.inputs.map(({ n }) => n)).toEqual(Array.from({ length: 200 }, (_, n) => n));
    const reply = await talk(square()).pythonWithTools(rounds("await square(n=200)"));
    expect(reply.failed).toBe(true);
    expect(reply.text).toContain("Code execution failed.");
    expect(reply.text).toContain("[sandbox] Execution exceeded maximum tool calls (200)");
  });

  test("two conversations at once, and two programs of one message, do not mix", async () => {
    const program = (base: number) => `
total = 0
for n in range(5):
    total += (await square(n=${base} + n))["result"]
print(total)
`;
    const [one, two] = [talk(square()), talk(square())];
    const call = (base: number) => ({ name: "run_tools_with_code", args: { code: program(base) } }) as const;
    const replies = await Promise.all([one.message([call(0), call(100)]), two.message([call(200)])]);
    const total = (base: number) => [0, 1, 2, 3, 4].reduce((sum, n) => sum + (base + n) ** 2, 0);
    expect(replies.flat().map(({ text }) => text)).toEqual(
      [0, 100, 200].map((base) => `stdout:\n${total(base)}`),
    );
  });

  test("a program without tools is run as it is, with await at its top", async () => {
    const chat = talk(square());
    const program = "await asyncio.sleep(0)\nprint('no tools')";
    expect((await chat.pythonWithTools(program, { tool_manifest: [] })).text).toBe("stdout:\nno tools");
    expect((await chat.pythonWithTools("print('unused')")).text).toBe("stdout:\nunused");
  });

  test("a program sees the tools of its manifest alone", async () => {
    const tools = [square(), value()];
    const reply = await talk(...tools).pythonWithTools(
      `print((await square(n=3))["result"], "value" in globals())`,
      { tool_manifest: ["square"] },
    );
    expect(reply.text).toBe("stdout:\n9 False");
  });
});

describe("names and arguments", () => {
  test("names that Python does not have are reached as the client describes them", async () => {
    const tools = ["get-weather", "web search", "2fast", "class", "files.read", "print"].map((name) =>
      hostTool(name, (input) => ({ name, ...input }), {
        properties: { from: "string", "start-date": "string" },
        optional: ["from", "start-date"],
      }),
    );
    const reply = await talk(...tools).pythonWithTools(`
import sys
for answer in [await get_weather(from_="a"), await web_search(start_date="b"), await _2fast(**{"from": "c"}),
               await class_tool(), await filesread("d"), await print(start_date=None)]:
    sys.stdout.write(json.dumps(answer) + "\\n")
`);
    expect(reply.text.split("\n")).toEqual([
      "stdout:",
      '{"name": "get-weather", "from": "a"}',
      '{"name": "web search", "start-date": "b"}',
      '{"name": "2fast", "from": "c"}',
      '{"name": "class"}',
      '{"name": "files.read", "from": "d"}',
      '{"name": "print"}',
    ]);
  });

  test("a missing argument is a TypeError and no call", async () => {
    const tool = square();
    const reply = await talk(tool).pythonWithTools(
      "try:\n    await square()\nexcept TypeError as e:\n    print(e)",
    );
    expect(reply.text).toMatch(/^stdout:\n.*n/);
    expect(tool.inputs).toEqual([]);
  });

  test("text with every kind of quote, brace and dollar comes through both ways", async () => {
    const text = `"""'''\\ $& \${x} \`id\` {{y}} %s \u2028 👩‍💻 \u0000 </script>`;
    const tool = hostTool("echo", ({ text }) => text, { properties: { text: "string" } });
    const reply = await talk(tool).pythonWithTools(`
text = json.loads(${JSON.stringify(JSON.stringify(text))})
print(await echo(text=text) == text)
`);
    expect(tool.inputs).toEqual([{ text }]);
    expect(reply.text).toBe("stdout:\nTrue");
  });
});

describe("results", () => {
  const VALUES = [
    "null",
    "true",
    "-1.5e-7",
    "12345678901",
    '"text"',
    '"{\\"a\\": 1}"',
    "[]",
    '[1, [null, {"ä": "€"}]]',
    '{"a": {"b": []}}',
  ];

  test("every JSON value arrives as what it is; a string stays one even when it holds JSON", async () => {
    const reply = await talk(value()).pythonWithTools(`
for text in json.loads(${JSON.stringify(JSON.stringify(VALUES))}):
    answer = await value(json=text)
    print(answer == json.loads(text) and type(answer) is type(json.loads(text)))
`);
    expect(reply.text).toBe(`stdout:\n${VALUES.map(() => "True").join("\n")}`);
  });

  test("a tool that answers nothing gives None", async () => {
    const reply = await talk(hostTool("silent", () => undefined)).pythonWithTools("print(await silent())");
    expect(reply.text).toBe("stdout:\nNone");
  });

  test("what tools of MCP servers answer arrives unwrapped", async () => {
    const blocks = (text: string) => [{ type: "text", text }];
    const tools = [
      hostTool("tuple", () => [blocks('{"rows": [1, 2]}'), { extra: true }], { mcp: true }),
      hostTool("pair", () => ["plain text", { extra: true }], { mcp: true, pair: true }),
      hostTool("blocks", () => [...blocks("one"), ...blocks("two")], { mcp: true }),
      hostTool("plain", () => blocks("kept")),
    ];
    const reply = await talk(...tools).pythonWithTools(`
print((await tuple())["rows"], await pair(), (await blocks()).split(), await plain())
`);
    expect(reply.text).toBe("stdout:\n[1, 2] plain text ['one', 'two'] [{'type': 'text', 'text': 'kept'}]");
  });

  test("4 MB come back, 900 kB go out, and a result beyond the limit is refused without ending the service", async () => {
    const big = hostTool(
      "big",
      ({ size, text }) => ({ got: String(text).length, data: "x".repeat(Number(size)) }),
      {
        properties: { size: "number", text: "string" },
      },
    );
    const reply = await talk(big).pythonWithTools(`
answer = await big(size=4_000_000, text="y" * 900_000)
print(answer["got"], len(answer["data"]))
`);
    expect(reply.text).toBe("stdout:\n900000 4000000");
    const refused = await talk(big).pythonWithTools(
      'print(len((await big(size=6_000_000, text=""))["data"]))',
    );
    expect(refused.failed).toBe(true);
    expect(refused.text).toContain("The code execution request was rejected.");
  });
});

describe("failing tools", () => {
  test("are caught as ToolExecutionError with the tool's own words", async () => {
    const reply = await talk(failing(), square()).pythonWithTools(`
try:
    await failing()
except ToolExecutionError as error:
    print("caught:", error)
results = await asyncio.gather(failing(), square(n=2), return_exceptions=True)
print(type(results[0]).__name__, results[1]["result"])
`);
    expect(reply.failed).toBe(false);
    expect(reply.text).toMatch(/^stdout:\ncaught: .*the upstream said 'no'.*\nToolExecutionError 4$/);
  });

  test("end a program that does not catch them, with the cause on its stderr", async () => {
    const reply = await talk(failing()).pythonWithTools("print('before')\nawait failing()");
    expect(reply.failed).toBe(true);
    expect(reply.text).toContain(
      "Programmatic execution failed: Code execution failed. Execution exited with code 1\n",
    );
    expect(reply.text).toMatch(/Stderr:\nTraceback[\s\S]*line 2[\s\S]*the upstream said 'no'/);
  });

  test("an input that the tool's own schema refuses is a failure of the tool", async () => {
    const reply = await talk(square()).pythonWithTools(`
try:
    await square(n="many")
except ToolExecutionError as error:
    print("refused")
`);
    expect(reply.text).toBe("stdout:\nrefused");
  });
});

describe("files", () => {
  test("attached ones are there, new and changed ones go on to the next call of any tool", async () => {
    const chat = talk(square());
    chat.attach(await new Api(system.url).upload({ "in.txt": "3" }, { kind: "user", id: "someone" }));
    const before = chat.file("in.txt");
    const reply = await chat.pythonWithTools(`
n = int(open("/mnt/data/in.txt").read())
open("early.txt", "w").write("written before the call")
answer = await square(n=n)
open("out.json", "w").write(json.dumps(answer))
open("in.txt", "a").write("0")
`);
    expect(reply.text).toMatch(/^stdout: Empty\.[\s\S]*Session files: 3 persisted file\(s\)/);
    expect(chat.file("in.txt").modified_from?.id).toBe(before.id);
    expect((await chat.bash("cat early.txt; echo; cat out.json in.txt")).text).toBe(
      'stdout:\nwritten before the call\n{"n": 3, "result": 9}30',
    );
    const again = await chat.pythonWithTools("print((await square(n=int(open('in.txt').read())))['result'])");
    expect(again.text).toBe("stdout:\n900");
    expect(chat.file("out.json").inherited).toBe(true);
  });
});
