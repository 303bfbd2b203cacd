import { Jaild } from "@svc/test-kit/jail/jaild";
import { NAMES } from "@svc/test-kit/jail/zygotes";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { LAST, runStep, SAVED, Session } from "../support/session.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 2, zygotes: true });
  await jaild.warm();
}, 90_000);
afterAll(() => jaild.stop());

afterEach(async () => {
  const session = new Session(jaild, "python-standard");
  await session.step("x = 1");
  expect(await session.print("print(x)")).toBe("1\n");
});

const HEADER = '{"v": 1, "names": [], "modules": [], "dropped": []}\n';

/** A file of variables of these pickles, each of which should be of a list with one value. */
function fileOf(pickles: readonly (string | Buffer)[], { header = HEADER, index = "" } = {}): Buffer {
  let body = Buffer.from(header);
  const entries = pickles.map((pickle, at) => {
    const offset = body.length;
    body = Buffer.concat([body, Buffer.from(pickle)]);
    return `(Vv${at}\nI${offset}\nI0\nta`;
  });
  const end = Buffer.alloc(8);
  end.writeBigUInt64BE(BigInt(body.length));
  return Buffer.concat([body, Buffer.from(index || `(I0\n(l${entries.join("")}t.`), end]);
}

const call = (name: string, argument: string) => `(lc${name.replace(" ", "\n")}\n(${argument}tRa.`;
const executes = (source: string) => call("builtins exec", `V${source.replaceAll("\n", "\\u000a")}\n`);
const GOOD = "(lI7\na.";

/** Programs that go on: what their variables were does no more than cost these. */
const RAN = 'print("ran", globals().get("v1"))';

describe("a damaged file of variables costs the variables, and the program runs", () => {
  const damaged: Record<string, Buffer> = {
    "an empty one": Buffer.of(),
    "one line": Buffer.from(HEADER),
    "a line of 10 MB": Buffer.from("x".repeat(10 << 20)),
    "a first line of 10 MB that begins well": Buffer.from(`{"v": 1, ${" ".repeat(10 << 20)}`),
    zeros: Buffer.alloc(100_000),
    "another version": fileOf([GOOD, GOOD], { header: '{"v": 2}\n' }),
    "the end is missing": fileOf([GOOD, GOOD]).subarray(0, -3),
    "the index lies beyond the end": Buffer.concat([Buffer.from(HEADER), Buffer.alloc(8, 0xff)]),
    "the index is no pickle": fileOf([GOOD], { index: "nonsense" }),
    "the index is a number": fileOf([GOOD], { index: "I5\n." }),
    "the index has wrong entries": fileOf([GOOD], { index: "(I0\n(l(Vv\nVw\nI0\ntat." }),
    "the index is code that raises": fileOf([GOOD], { index: executes("raise SystemExit(3)").slice(2) }),
  };
  it.each(Object.entries(damaged))("%s", async (_name, file) => {
    const step = await runStep(jaild, RAN, { files: { [SAVED]: file } });
    expect({ out: step.out, err: step.err, exitCode: step.end.exitCode }).toEqual({
      out: "ran None\n",
      err: "",
      exitCode: 0,
    });
    expect(step.header?.dropped).toEqual([
      { name: "*", reason: expect.stringMatching(/^the saved variables are damaged: ./) },
    ]);
    expect(Object.keys(step.files)).toEqual([SAVED]);
  });

  it("or those alone that are damaged, at any place", async () => {
    const session = new Session(jaild);
    await session.step("a = [1]; b = ('two', a); c = {'three': b}; d = [a]");
    const whole = session.files[SAVED] ?? Buffer.of();
    const start = whole.indexOf("\n") + 1;
    const programs = Array.from(
      { length: 40 },
      (_, at) => start + Math.floor(((whole.length - start) * at) / 40),
    );
    for (const at of programs) {
      const file = Buffer.from(whole);
      file[at] = 0xff - (file[at] ?? 0);
      const step = await runStep(jaild, "print('ran')", { files: { [SAVED]: file } });
      expect({ out: step.out, err: step.err, exitCode: step.end.exitCode }).toEqual({
        out: "ran\n",
        err: "",
        exitCode: 0,
      });
    }
  }, 60_000);
});

describe("a variable that cannot be loaded is lost alone", () => {
  const failing: Record<string, [string | Buffer, RegExp]> = {
    "infinite recursion": [executes("f = lambda f: f(f)\nf(f)"), /^RecursionError: /],
    "code that ends the program": [executes("raise SystemExit(3)"), /^SystemExit: 3/],
    "an allocation that no machine has": [
      call("builtins bytearray", "L9223372036854775000L\n"),
      /^(MemoryError|OverflowError)/,
    ],
    "a memo entry that no machine has": [
      Buffer.from("(lI1\nr\xff\xff\xff\xffa.", "latin1"),
      /^MemoryError|list/,
    ],
    "a module that is not there": ["(lcno_such_module\nx\na.", /^ModuleNotFoundError: /],
    "a name that is not there": ["(lcos\nno_such_name\na.", /^AttributeError: /],
    "an unknown word": ["\xff", /^invalid load key|^unpickling stack/],
    "nothing on the stack": ["a.", /stack underflow|unexpected MARK/],
    "no list": ["I5\n.", /^(cannot unpack|ValueError)/],
    "another one's memo": [
      "(lg17\na.",
      /^it shares a value with a variable that could not be loaded$|^KeyError|Memo/,
    ],
  };
  it.each(Object.entries(failing))("%s", async (_name, [pickle, reason]) => {
    const step = await runStep(jaild, RAN, { files: { [SAVED]: fileOf([pickle, GOOD]) } });
    expect({ out: step.out, err: step.err, exitCode: step.end.exitCode }).toEqual({
      out: "ran 7\n",
      err: "",
      exitCode: 0,
    });
    expect(step.header?.dropped).toEqual([{ name: "v0", reason: expect.stringMatching(reason) }]);
  });

  it("what takes longer than 20 s, with all that comes behind it", async () => {
    const endless = ["while True: pass", "import time\ntime.sleep(1000)"];
    const steps = endless.map((code) => {
      const files = { [SAVED]: fileOf([GOOD, executes(code), GOOD]) };
      return runStep(jaild, 'print("ran", v0, "v1" in globals())', { files, limits: { wallMs: 300_000 } });
    });
    for (const { out, err, end, header } of await Promise.all(steps)) {
      expect({ out, err, exitCode: end.exitCode }).toEqual({ out: "ran 7 False\n", err: "", exitCode: 0 });
      const reason = "loading took longer than 20 s";
      expect(header?.names).toEqual(["v0"]);
      expect(header?.dropped).toEqual(["v1", "v2"].map((name) => ({ name, reason })));
    }
  }, 300_000);

  it("deep nesting is no failure", async () => {
    const deep = `${"(l".repeat(100_001)}${"a".repeat(100_000)}.`;
    const step = await runStep(jaild, RAN, { files: { [SAVED]: fileOf([deep, GOOD]) } });
    expect({ out: step.out, err: step.err, exitCode: step.end.exitCode }).toEqual({
      out: "ran 7\n",
      err: "",
      exitCode: 0,
    });
    expect(step.header?.dropped).toEqual([{ name: "v0", reason: expect.stringContaining("recursion") }]);
  });
});

describe("hostile pickles hurt their own run", () => {
  const LIMITS = { wallMs: 5000, memoryBytes: 128 << 20, processes: 32 };

  it("a command runs as the program would run it", async () => {
    const file = fileOf([call("posix system", "Vid -u; echo owned > owned\n"), GOOD]);
    const { out, files, end } = await runStep(jaild, RAN, { files: { [SAVED]: file } });
    expect(out).toMatch(/^\d+\nran 7\n$/);
    expect(end.exitCode).toBe(0);
    expect(files.owned?.toString()).toBe("owned\n");
  });

  it("changed builtins are those of the run", async () => {
    const file = fileOf([
      executes(
        "import builtins\ndef no(*a): raise LookupError\nbuiltins.print = builtins.open = builtins.compile = builtins.exec = no",
      ),
    ]);
    const { end } = await runStep(jaild, RAN, { files: { [SAVED]: file } });
    expect(end).toMatchObject({ cause: "exited", exitCode: 1 });
  });

  it.each([
    ["os._exit", "import os; os._exit(5)", { cause: "exited", exitCode: 5 }],
    ["SIGKILL", "import os; os.kill(os.getpid(), 9)", { cause: "signaled", signal: 9 }],
  ])("%s leaves the file under the other name", async (_name, source, end) => {
    const file = fileOf([executes(source)]);
    const step = await runStep(jaild, RAN, { files: { [SAVED]: file } });
    expect(step.end).toMatchObject(end);
    expect(step.files).toEqual({ [LAST]: file });
  });

  it.each([
    ["an endless loop", "while True: pass", ["wall_limit"]],
    ["memory without end", "x = []\nwhile True: x.append(bytearray(1 << 20))", ["memory_limit"]],
    [
      "a fork bomb",
      "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
      ["wall_limit", "memory_limit"],
    ],
  ])("%s ends at the limits of the run", async (_name, source, causes) => {
    const step = await runStep(jaild, RAN, {
      files: { [SAVED]: fileOf([executes(source)]) },
      limits: LIMITS,
    });
    expect(causes).toContain(step.end.cause);
  });

  it.each(NAMES)("also where it starts as a copy of the zygote %s", async (zygote) => {
    const poison = executes(
      "import sys, builtins, random\nsys.modules['random'] = None\nbuiltins.len = None\nrandom.random = lambda: 4",
    );
    await runStep(jaild, RAN, { zygote, files: { [SAVED]: fileOf([poison, GOOD]) } });
    const { out, err } = await runStep(jaild, "import random; print(len([1]), random.random() < 1)", {
      zygote,
    });
    expect({ out, err }).toEqual({ out: "1 True\n", err: "" });
  });
});
