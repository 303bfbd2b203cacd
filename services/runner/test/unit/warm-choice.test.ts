import { describe, expect, it } from "vitest";
import { kindFor } from "../../src/warm/kinds.ts";

const ZYGOTES = [
  { name: "python", argv: ["/usr/bin/python3", "main.py"], words: [] },
  { name: "python-data", argv: ["/usr/bin/python3", "main.py"], words: ["numpy", "pandas"] },
];
const chosen = (source: string, command = "/usr/bin/python3") =>
  kindFor(
    { argv: [command, "main.py"], contents: [{ path: "main.py", bytes: Buffer.from(source) }] },
    ZYGOTES,
  )?.name;

describe("the kind of jail of a program", () => {
  it.each([
    ["print(1)", "python"],
    ["import pandas as pd", "python-data"],
    ["from numpy import array", "python-data"],
    ["x = __import__('pandas')", "python-data"],
    ["import random", "python"],
    ["", "python"],
    [`${"#".repeat(1 << 20)}\nimport numpy`, "python"],
  ])("%#: is the last one whose words it has near its start", (source, name) => {
    expect(chosen(source)).toBe(name);
  });

  it("is a parked interpreter for its very command only", () => {
    const command = ["/usr/bin/node", "--require=/a.cjs", "index.js"];
    const kinds = [{ name: "javascript", argv: command, words: [], parked: { least: 1 } }];
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
    expect(chosen("import pandas", "/usr/bin/node")).toBeUndefined();
    expect(kindFor({ argv: ["/usr/bin/python3", "main.py"], contents: [] }, [])).toBeUndefined();
    expect(kindFor({ argv: ["/usr/bin/python3", "main.py"], contents: [] }, ZYGOTES)?.name).toBe("python");
  });
});
