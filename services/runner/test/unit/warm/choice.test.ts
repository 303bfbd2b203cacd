import { kindFor } from "@svc/runner/warm/kinds";
import { describe, expect, it } from "vitest";

const argv = ["/usr/bin/python3", "main.py"];
const prelude = ["/usr/bin/python3", "/prelude.py", "main.py"];
const session = ["/usr/bin/python3", "/session.py", "main.py"];
const ZYGOTES = [
  { name: "python", argv, words: [] },
  { name: "python-standard", argv, words: ["asyncio", "import ast"], preludes: [prelude, session] },
  { name: "python-data", argv, words: ["numpy", "pandas"] },
];
const chosen = (source: string, command = argv) =>
  kindFor({ argv: command, contents: [{ path: "main.py", bytes: Buffer.from(source) }] }, ZYGOTES)?.name;

describe("the kind of jail of a program", () => {
  it.each([
    ["print(1)", "python"],
    ["import pandas as pd", "python-data"],
    ["from numpy import array", "python-data"],
    ["x = __import__('pandas')", "python-data"],
    ["import ast", "python-standard"],
    ["import asyncio, pandas", "python-data"],
    ["the last one", "python"],
    ["import random", "python"],
    ["", "python"],
    [`${"#".repeat(1 << 20)}\nimport numpy`, "python"],
  ])("%#: is the last one whose words it has near its start", (source, name) => {
    expect(chosen(source)).toBe(name);
  });

  it("of one that has tools or a session knows the prelude, whatever the words", () => {
    expect(chosen("print(1)", prelude)).toBe("python-standard");
    expect(chosen("print(1)", session)).toBe("python-standard");
    expect(chosen("import pandas", session)).toBe("python-data");
    expect(chosen("import asyncio", prelude)).toBe("python-standard");
    expect(chosen("import pandas", prelude)).toBe("python-data");
    expect(chosen("print(1)", [...prelude, "argument"])).toBe("python");
    expect(chosen("print(1)", ["/usr/bin/python3", "-m", "x"])).toBe("python");
  });

  it("is a pre-started interpreter for its very command only", () => {
    const command = ["/usr/bin/node", "--require=/a.cjs", "index.js"];
    const kinds = [{ name: "javascript", argv: command, words: [], prestarted: { least: 1, refillMs: 20 } }];
    const contents: { path: string; bytes: Buffer }[] = [];
    expect(kindFor({ argv: command, contents }, kinds)?.name).toBe("javascript");
    for (const argv of [
      [...command, "argument"],
      ["/usr/bin/node", "--require=/a.cjs", "other.js"],
      command.slice(0, 2),
    ])
      expect(kindFor({ argv, contents }, kinds)).toBeUndefined();
  });

  it("is none for another interpreter, and none when there are none", () => {
    expect(chosen("import pandas", ["/usr/bin/node", "main.py"])).toBeUndefined();
    expect(kindFor({ argv, contents: [] }, [])).toBeUndefined();
    expect(kindFor({ argv, contents: [] }, ZYGOTES)?.name).toBe("python");
  });
});
