import { describe, expect, it } from "vitest";
import { zygoteFor } from "../../src/warm/jails.ts";

const ZYGOTES = [
  { name: "python", argv: ["/usr/bin/python3", "main.py"], words: [] },
  { name: "python-data", argv: ["/usr/bin/python3", "main.py"], words: ["numpy", "pandas"] },
];
const chosen = (source: string, command = "/usr/bin/python3") =>
  zygoteFor(
    { argv: [command, "main.py"], contents: [{ path: "main.py", bytes: Buffer.from(source) }] },
    ZYGOTES,
  )?.name;

describe("the zygote of a program", () => {
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

  it("is none for another interpreter, and none when there are none", () => {
    expect(chosen("import pandas", "/usr/bin/node")).toBeUndefined();
    expect(zygoteFor({ argv: ["/usr/bin/python3", "main.py"], contents: [] }, [])).toBeUndefined();
    expect(zygoteFor({ argv: ["/usr/bin/python3", "main.py"], contents: [] }, ZYGOTES)?.name).toBe("python");
  });
});
