import { describe, expect, it } from "vitest";
import type { Problem } from "../../src/problem.ts";
import { parseSettings } from "../../src/settings/file.ts";

const read = (text: string) =>
  Object.fromEntries([...parseSettings(text, "svc.env")].map(([name, { value }]) => [name, value]));

function refusal(text: string): string {
  try {
    read(text);
  } catch (error) {
    return (error as Problem).message;
  }
  throw new Error("it was accepted");
}

const TICK_MS = 4;

describe("a settings file", () => {
  it.each([
    ["", {}],
    ["\n\n", {}],
    ["# A=1\n; B=2\n  # C=3\n", {}],
    ["A=1", { A: "1" }],
    ["A=1\nB=2\n", { A: "1", B: "2" }],
    ["A=1\r\nB=2\r\n", { A: "1", B: "2" }],
    ["  A \t= 1 2  \n", { A: "1 2" }],
    ["A=\nB=", { A: "", B: "" }],
    ["A=b=c", { A: "b=c" }],
    ['A=it\'s "so" # here', { A: 'it\'s "so" # here' }],
    ["A=one\\\ntwo\nB=3", { A: "onetwo", B: "3" }],
    ["A=a\\\\b\\nc\\ \\", undefined],
    ["A=a\\\\b\\nc\\ ", { A: "a\\bnc " }],
    ["A=''", { A: "" }],
    ["A='a # \\n \"$'  \nB=2", { A: 'a # \\n "$', B: "2" }],
    ["A='one\ntwo'\nB=2", { A: "one\ntwo", B: "2" }],
    ['A="a \\"b\\" \\\\ \\$ \\` \\n"', { A: 'a "b" \\ $ ` \\n' }],
    ['A="one\ntwo\\\nthree"\nB=2', { A: "one\ntwothree", B: "2" }],
    ["ä=1", undefined],
    ["A=ä\u{1F600}", { A: "ä\u{1F600}" }],
    ["__proto__=1\nconstructor=2", { ["__proto__"]: "1", constructor: "2" }],
  ])("%j holds %j", (text, values) => {
    if (values === undefined) expect(() => read(text)).toThrow("svc.env:1: ");
    else expect(parsedPairs(text)).toEqual(Object.entries(values));
  });

  const parsedPairs = (text: string) =>
    [...parseSettings(text, "svc.env")].map(([name, { value }]) => [name, value]);

  it.each([
    ["A=1\nB\n", "svc.env:2: KEY=value is expected"],
    ["export A=1", "svc.env:1: KEY=value is expected, without `export`"],
    ["\n=1", "svc.env:2: the text before = is not the name of a variable"],
    ["A B=1", "svc.env:1: the text before = is not the name of a variable"],
    ["1A=1", "svc.env:1: the text before = is not the name of a variable"],
    ["A=1\nB=2\nA=3", "svc.env:3: A is set in line 1 already"],
    ["A='1\n2'\nA=3", "svc.env:3: A is set in line 1 already"],
    ["\nA='b\nc\n", "svc.env:2: the quote is not closed"],
    ['\nA="b\\"\nc\n', "svc.env:2: the quote is not closed"],
    ["A='b'c", "svc.env:1: there is text after the closing quote"],
    ['A="b" # c', "svc.env:1: there is text after the closing quote"],
    ["A=\\", "svc.env:1: the file ends with a backslash"],
    ["A=\0", "svc.env:1: the file contains a NUL character"],
    ["\uFEFFA=1", "svc.env:1: the file begins with a byte order mark; save it as plain UTF-8"],
  ])("%j is refused with file and line", (text, message) => expect(refusal(text)).toBe(message));

  it("shows nothing of what it refuses", () => {
    for (const text of [
      "hunter2",
      "hunter2 x=1",
      "A='hunter2",
      "A='x'hunter2",
      "hunter2 x==",
      "A=1\nA=hunter2",
    ])
      expect(refusal(text)).not.toContain("hunter2");
  });

  it("gives back any value that was quoted for it", () => {
    const characters = ["a", " ", "\t", "\n", "#", "=", "'", '"', "\\", "$", "`", "ä", "\u{1F600}", ";"];
    let state = 1;
    const random = (below: number) => {
      state = (state * 48_271) % 2_147_483_647;
      return state % below;
    };
    for (let round = 0; round < 2000; round++) {
      const text = Array.from({ length: random(12) }, () => characters[random(characters.length)]).join("");
      const quoted = `"${text.replaceAll(/["\\`$]/g, (found) => `\\${found}`)}"`;
      expect(read(`A=${quoted}\nB=2`)).toEqual({ A: text, B: "2" });
      if (!text.includes("'")) expect(read(`A='${text}'\nB=2`)).toEqual({ A: text, B: "2" });
    }
  });

  it.each([
    ["many lines", (n: number) => Array.from({ length: n / 8 }, (_, at) => `A${at}=1`).join("\n")],
    ["blanks", (n: number) => `A=b${" ".repeat(n)}c`],
    ["backslashes", (n: number) => `A=${"\\\\".repeat(n / 2)}`],
    ["continued lines", (n: number) => `A=${"\\\n".repeat(n / 2)}b`],
    ["quotes", (n: number) => `A="${'\\"'.repeat(n / 2)}"`],
    ["an open quote", (n: number) => `A="${"b\n".repeat(n / 2)}`],
    ["comments", (n: number) => "#\n".repeat(n / 2)],
  ])("of %s takes time in proportion to its length", (_what, textOf) => {
    const took = (length: number) => {
      const text = textOf(length);
      const before = process.threadCpuUsage();
      try {
        parseSettings(text, "svc.env");
      } catch {}
      // Of this thread alone: other work on the machine does not count. The kernel may count in ticks.
      return Math.max(process.threadCpuUsage(before).user / 1000, TICK_MS);
    };
    const least = (length: number) => Math.min(...Array.from({ length: 5 }, () => took(length)));
    least(50_000);
    expect(least(400_000)).toBeLessThan(40 * least(50_000));
  });
});
