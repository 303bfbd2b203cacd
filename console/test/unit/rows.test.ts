/** Rows of files that anybody's program wrote. */
import { describe, expect, test } from "vitest";
import { rowsOf } from "../../src/rows.ts";

const lines = (text: string, name = "x.csv") => rowsOf(name, text);

describe("rows of a file", () => {
  test.each<[string, string, string[][] | undefined]>([
    [
      "fields",
      "a,b\n1,2\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "the last line without an end",
      "a,b\n1,2",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "lines of Windows",
      "a,b\r\n1,2\r\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    ["empty lines, which are left out", "\n\na\n\n1\n", [["a"], ["1"]]],
    [
      "empty fields",
      ",\n1,\n",
      [
        ["", ""],
        ["1", ""],
      ],
    ],
    ["quotes", '"a,""b""","c\nd"\n', [['a,"b"', "c\nd"]]],
    ["text behind quotes", '"a"b,c\n', [["ab", "c"]]],
    ["quotes that nothing closes", '"a,b\nc', [["a,b\nc"]]],
    ["quotes inside of a field", 'a"b,c\n', [['a"b', "c"]]],
    [
      "semicolons",
      "a;b;c,d\n1;2;3\n",
      [
        ["a", "b", "c,d"],
        ["1", "2", "3"],
      ],
    ],
    [
      "tabulators",
      "a\tb\n1\t2\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    ["nothing", "\n", undefined],
  ])("%s", (_what, text, rows) => {
    expect(lines(text)).toEqual(rows);
  });

  test("of JSON are its records, each with the columns of all", () => {
    const text = JSON.stringify([{ a: 1, b: "x" }, 2, null, { c: [true] }]);
    expect(rowsOf("X.JSON", text)).toEqual([
      ["a", "b", "c"],
      ["1", "x", ""],
      ["", "", "[true]"],
    ]);
    for (const other of ["{}", "[]", "[1]", "[{}]"]) expect(rowsOf("x.json", other)).toBeUndefined();
    expect(() => rowsOf("x.json", "{")).toThrow(SyntaxError);
  });

  test.each<[string, string]>([
    ["x.csv", `${"a,".repeat(40)}\n`.repeat(200)],
    [
      "x.json",
      JSON.stringify(Array(200).fill(Object.fromEntries(Array.from({ length: 40 }, (_, at) => [at, 1])))),
    ],
  ])("of %s are the first 100 below the names, with the first 30 columns", (name, text) => {
    const rows = rowsOf(name, text) ?? [];
    expect(rows).toHaveLength(101);
    expect(new Set(rows.map((row) => row.length))).toEqual(new Set([30]));
  });
});

/** Processor time is steadier than the clock on a machine that does other work. */
function millisecondsOf(name: string, text: string): number {
  const before = process.cpuUsage();
  try {
    rowsOf(name, text);
  } catch {
    // It is no JSON: that is told in no time as well.
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const MIB = 2 ** 20;
const filled = (piece: string) => piece.repeat(Math.ceil(MIB / piece.length));
const half = (piece: string) => piece.repeat(Math.ceil(MIB / 2 / piece.length));
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 0]));

/** Each of the most bytes that the page reads. */
const HOSTILE: readonly [what: string, name: string, text: string][] = [
  ["100,000 columns in 100 records", "x.json", JSON.stringify([keys(100_000), ...Array(99).fill({})])],
  ["deep arrays", "x.json", `[${half("[")}${half("]")}]`],
  ["records without columns", "x.json", `[${filled("{},")}{}]`],
  ["quotes, then blanks", "x.csv", `"${half('x"')}${half(" ")},a\n`],
  ["quotes, then blanks and no delimiter", "x.csv", `"${half('x"')}${half(" ")}\n`],
  ["quotes that open each line", "x.csv", filled('"a,\n')],
  ["quotes alone", "x.csv", filled('"')],
  ["delimiters alone", "x.csv", filled(",")],
  ["empty lines", "x.csv", filled("\r\n")],
  ["one field", "x.csv", filled("a")],
];

test.each(HOSTILE)("a file of %s is read in less than two seconds", (_what, name, text) => {
  expect(text.length).toBeGreaterThan(MIB * 0.9);
  expect(millisecondsOf(name, text)).toBeLessThan(2000);
});
