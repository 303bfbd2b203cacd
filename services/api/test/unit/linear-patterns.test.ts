/** No regular expression of a component that reads callers' text backtracks more than a text is long. */
import { globSync, readFileSync } from "node:fs";
import { isSafe } from "redos-detector";
import { describe, expect, test } from "vitest";
import { parseAst } from "vitest/node";

const ROOT = new URL("../../../../", import.meta.url).pathname;
const FOLDERS = [
  "services/{api,file-server,egress-gateway,tool-call-server,worker}/src/**/*.ts",
  "packages/{contracts,capabilities}/src/**/*.ts",
  "packages/service-kit/src/http/*.ts",
];
/** Made of texts of ours. */
const BUILT = ["packages/service-kit/src/http/route-table.ts"];

interface Node {
  type: string;
  regex?: { pattern: string; flags: string };
  callee?: { name?: string };
}

function* nodesOf(value: unknown): Generator<Node> {
  if (typeof value !== "object" || value === null || value instanceof RegExp) return;
  if ("type" in value) yield value as Node;
  for (const child of Object.values(value)) yield* nodesOf(child);
}

const FILES = globSync(FOLDERS, { cwd: ROOT });
const nodes = FILES.flatMap((file) =>
  [...nodesOf(parseAst(readFileSync(ROOT + file, "utf8"), { lang: "ts" }))].map((node) => ({ file, node })),
);
const patterns = nodes.flatMap(({ file, node: { regex } }) =>
  regex === undefined ? [] : [[`${file} /${regex.pattern}/${regex.flags}`, regex] as const],
);
const isLinear = (pattern: string, flags: string) =>
  isSafe(new RegExp(pattern, flags), { maxScore: 1000, timeout: 5000 }).safe;

describe("regular expressions", () => {
  test.each(patterns)("%s is linear", (_name, { pattern, flags }) => {
    expect(isLinear(pattern, flags)).toBe(true);
  });

  test("are literals, where they see texts of callers", () => {
    const built = nodes.filter(
      ({ node }) => /^(New|Call)Expression$/.test(node.type) && node.callee?.name === "RegExp",
    );
    expect([...new Set(built.map(({ file }) => file))]).toEqual(BUILT);
    expect(FILES.length).toBeGreaterThan(100);
    expect(patterns.length).toBeGreaterThan(30);
  });

  test.each([
    ["^([a-z]+):[ \\t]*(.*?)[ \\t]*$", "s"],
    ["[ \\t]*;[ \\t]*(a+)", ""],
    ["\\s+$", ""],
    ["^(a+)+$", ""],
  ])("with two parts without bound over the same text would be found: %s", (pattern, flags) => {
    expect(isLinear(pattern, flags)).toBe(false);
  });
});
