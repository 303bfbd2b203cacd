import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toolFiles } from "../../src/index.ts";

describe("toolFiles", () => {
  it("gives Python one JSON document with every definition as data", () => {
    const parameters = { type: "object", properties: { __proto__x: {}, a: { type: "string" } } };
    const files = toolFiles(
      "python",
      [{ name: "a-b", description: '"""', parameters }, { name: "class" }],
      99,
    );
    expect(Object.keys(files)).toEqual(["tools.json"]);
    expect(JSON.parse(files["tools.json"] as string)).toEqual({
      version: 1,
      language: "python",
      max_bytes: 99,
      tools: [
        { name: "a-b", identifier: "a_b", description: '"""', parameters },
        { name: "class", identifier: "class_tool", description: "", parameters: null },
      ],
    });
  });

  it("gives Bash one line per tool, of which no part can be anything but a word", () => {
    expect(toolFiles("bash", [{ name: "a.b" }, { name: "echo" }, { name: "if" }], 1)).toEqual({
      "tools.tsv": "a_b\t0\t0\necho\t1\t1\nif_tool\t0\t2\n",
    });
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary", minLength: 1 }), { maxLength: 5 }), (names) => {
        const table = toolFiles(
          "bash",
          names.map((name) => ({ name, description: name })),
          1,
        )["tools.tsv"];
        expect(table).toMatch(/^(?:[A-Za-z_][A-Za-z0-9_]*\t[01]\t\d+\n)*$/);
        expect(table?.split("\n")).toHaveLength(names.length + 1);
      }),
    );
  });
});
