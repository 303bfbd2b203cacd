/** The shape of the sources: what may import what, and how large files and start functions may be. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const MAX_LINES = 400;
const MAX_START_LINES = 60;

const filesBelow = (pattern: string) =>
  globSync(pattern, { cwd: ROOT, exclude: (path) => /node_modules|\/dist\//.test(path) });
const textOf = (path: string) => readFileSync(join(ROOT, path), "utf8");

const FILES = filesBelow("{packages,services,cli,tools,tests,runtimes}/**/*.ts");
const KNOWN: ReadonlySet<string> = new Set(FILES);

interface Package {
  name: string;
  folder: string;
  exports: string | Record<string, string>;
}

const PACKAGES: Package[] = filesBelow("{packages/*,services/*,cli,tools,tests,runtimes}/package.json").map(
  (path) => ({ ...JSON.parse(textOf(path)), folder: dirname(path) }),
);

/** The file that a specifier means; undefined outside the project. */
function resolved(from: string, specifier: string): string | undefined {
  if (specifier.startsWith(".")) return normalize(join(dirname(from), specifier));
  const owner = PACKAGES.find(({ name }) => specifier === name || specifier.startsWith(`${name}/`));
  if (owner === undefined) return undefined;
  const { name, folder, exports } = owner;
  const part = `.${specifier.slice(name.length)}`;
  if (typeof exports === "string") return join(folder, exports);
  return join(folder, exports[part] ?? exports["./*"]?.replace("*", part.slice(2)) ?? "");
}

const SPECIFIER = /^(?:import|export)\b[^;]*?from "([^"]+)"|^import "([^"]+)"/gm;
const specifiersOf = (path: string) =>
  [...textOf(path).matchAll(SPECIFIER)].map(([, named, bare]) => named ?? bare ?? "");

const IMPORTS: ReadonlyMap<string, readonly string[]> = new Map(
  FILES.map((path) => [
    path,
    specifiersOf(path).flatMap((specifier) => {
      const file = resolved(path, specifier);
      return file?.endsWith(".ts") ? [file] : [];
    }),
  ]),
);

/** The first cycle that is found, as its nodes in order. */
function cycleIn(edges: ReadonlyMap<string, Iterable<string>>): string[] | undefined {
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (node: string): string[] | undefined => {
    const at = path.indexOf(node);
    if (at !== -1) return [...path.slice(at), node];
    if (done.has(node)) return undefined;
    path.push(node);
    for (const next of edges.get(node) ?? []) {
      const cycle = visit(next);
      if (cycle !== undefined) return cycle;
    }
    path.pop();
    done.add(node);
    return undefined;
  };
  for (const node of edges.keys()) {
    const cycle = visit(node);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

const isSource = (path: string) => path.includes("/src/");
const packageOf = (path: string) =>
  PACKAGES.find(({ folder }) => path.startsWith(`${folder}/`))?.name ?? path;

describe("imports", () => {
  test("a cycle is found, and a graph without one has none", () => {
    const edges = new Map([
      ["a", ["b", "c"]],
      ["b", ["d"]],
      ["c", ["d"]],
    ]);
    expect(cycleIn(edges)).toBeUndefined();
    expect(cycleIn(edges.set("d", ["c"]))).toEqual(["d", "c", "d"]);
  });

  test("lead to files that exist", () => {
    const missing = FILES.flatMap((path) => IMPORTS.get(path)?.filter((target) => !KNOWN.has(target)) ?? []);
    expect(missing).toEqual([]);
    expect(IMPORTS.get("services/api/src/exec/route.ts")).toContain("packages/job-queue/src/index.ts");
  });

  test("of files have no cycle", () => {
    expect(cycleIn(IMPORTS)).toBeUndefined();
  });

  test("of the packages' sources have no cycle", () => {
    const edges = new Map<string, Set<string>>();
    for (const [path, targets] of IMPORTS) {
      if (!isSource(path)) continue;
      const others = targets.map(packageOf).filter((name) => name !== packageOf(path));
      edges.set(packageOf(path), new Set([...(edges.get(packageOf(path)) ?? []), ...others]));
    }
    expect(cycleIn(edges)).toBeUndefined();
  });

  test("climb two folders at most: what is further is imported by the name of its package", () => {
    const climbing = FILES.flatMap((path) =>
      specifiersOf(path).flatMap((specifier) =>
        specifier.startsWith("../../../") ? [`${path}: ${specifier}`] : [],
      ),
    );
    expect(climbing).toEqual([]);
  });

  test("of the product lead to no test and no tool of ours", () => {
    const product = FILES.filter((path) => isSource(path) && !/^(tools|packages\/test-kit)\//.test(path));
    const wrong = product.flatMap((path) =>
      (IMPORTS.get(path) ?? []).filter((target) =>
        /\/test\/|^tests\/|^tools\/|^packages\/test-kit\//.test(target),
      ),
    );
    expect(wrong).toEqual([]);
  });
});

describe("sizes", () => {
  test(`no source or test has more than ${MAX_LINES} lines`, () => {
    const others = filesBelow("{jail,runtimes,bench,tools,deploy}/**/*.{c,h,py,lua,sh,js,mjs,cjs}");
    const written = [...FILES, ...others].filter((path) => !path.includes(".generated."));
    const long = written.filter((path) => textOf(path).split("\n").length - 1 > MAX_LINES);
    expect(long).toEqual([]);
  });

  test(`no start function of the product has more than ${MAX_START_LINES} lines`, () => {
    const starts = FILES.filter((path) => isSource(path) && !path.startsWith("packages/test-kit/")).flatMap(
      (path) =>
        [
          ...textOf(path).matchAll(/^(?:export )?(?:async )?function ((?:start|run|build)\w*)[\s\S]*?^}/gm),
        ].map(([text, name]) => ({ name: `${path}: ${name}`, lines: text.split("\n").length })),
    );
    expect(starts.map(({ name }) => name)).toContain("services/worker/src/start.ts: startWorker");
    expect(starts.filter(({ lines }) => lines > MAX_START_LINES)).toEqual([]);
  });
});
