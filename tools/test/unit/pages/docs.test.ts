import { existsSync, globSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { metricsPage } from "@svc/tools/pages/metrics";
import { pythonErrors } from "@svc/tools/pages/python-errors";
import { configurationPage, errorsPage, secretsPage } from "@svc/tools/pages/reference";
import { scalingPage } from "@svc/tools/pages/scaling";
import { readMeasurements } from "@svc/tools/scaling/results";
import { describe, expect, test } from "vitest";

const committed = (page: string) => readFile(new URL(`../../../../docs/${page}`, import.meta.url), "utf8");

test("docs/configuration.md states what the code knows", async () => {
  expect(await committed("configuration.md")).toBe(configurationPage());
});

test("docs/errors.md has a row for every error code", async () => {
  expect(await committed("errors.md")).toBe(errorsPage());
});

test("the Python client has a class for every error code", async () => {
  expect(await committed("../clients/python/svc_client/errors.py")).toBe(pythonErrors());
});

test("docs/metrics.md has a row for every metric", async () => {
  expect(await committed("metrics.md")).toBe(metricsPage());
});

test("docs/operate.md has a row for every alert", async () => {
  const rules = readFileSync(join(ROOT, "deploy/monitoring/alerts.yml"), "utf8");
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const rows = (await committed("operate.md")).matchAll(/^\| (Svc\w+) \|/gm);
  expect([...rows].map(([, name]) => name)).toEqual(alerts);
  expect(alerts.length).toBeGreaterThan(10);
});

test("docs/secrets.md says who holds which secret", async () => {
  expect(await committed("secrets.md")).toBe(secretsPage());
});

test("docs/scaling.md states what the model says of the measurements", async () => {
  expect(await committed("scaling.md")).toBe(scalingPage(readMeasurements()));
}, 60_000);

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const PAGES = [...globSync("*.md", { cwd: ROOT }), ...globSync("docs/*.md", { cwd: ROOT })];

describe.each(PAGES)("%s", (page) => {
  const text = readFileSync(join(ROOT, page), "utf8");

  test("links only to files that exist", () => {
    const links = [...text.matchAll(/\]\(([^)#:]+)(#[^)]*)?\)/g)].map(([, target = ""]) => target);
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(page), link)))).toEqual([]);
  });

  test("names only source files and folders that exist", () => {
    const paths = [
      ...text.matchAll(
        /`((?:services|packages|jail|cli|tools|runtimes|tests|bench|deploy)\/[\w./*{},-]*(?:\.\w+|\/))`/g,
      ),
    ];
    const found = (path: string) => globSync(path, { cwd: ROOT }).length > 0;
    expect(paths.map(([, path = ""]) => path).filter((path) => !found(path))).toEqual([]);
  });
});

describe("the walks of CONTRIBUTING.md", () => {
  const MAX_HOPS = 12;
  const text = readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8");
  const [, section = ""] = /^## Three walks\n([\s\S]*?)^## /m.exec(text) ?? [];
  const walks = section
    .split(/^(?=\*\*)/m)
    .slice(1)
    .map((walk) => ({
      title: walk.split("\n", 1)[0] ?? "",
      hops: walk.match(/^\d+\. .*$/gm) ?? [],
    }));

  test("are three", () => expect(walks).toHaveLength(3));

  test.each(walks)("$title: at most 12 hops, each a file and a function of it", ({ hops }) => {
    expect(hops.length).toBeGreaterThan(5);
    expect(hops.length).toBeLessThanOrEqual(MAX_HOPS);
    for (const hop of hops) {
      const [, path = "", name = ""] = /^\d+\. `([^`]+)` `(#?\w+)`: /.exec(hop) ?? [];
      expect(path, hop).not.toBe("");
      expect(definitionsOf(readFileSync(join(ROOT, path), "utf8"))).toContain(name);
    }
  });

  test("names files of a hop beside its own only when they are there", () => {
    const beside = [...section.matchAll(/(?<=^\d+\. `([^`]+)`.*)`([\w./-]+\.ts)`/gm)];
    expect(beside.length).toBeGreaterThan(5);
    const missing = beside.filter(
      ([, own = "", name = ""]) =>
        ![ROOT, join(ROOT, dirname(own)), join(ROOT, dirname(dirname(own)))].some((folder) =>
          existsSync(join(folder, name)),
        ),
    );
    expect(missing.map(([, , name]) => name)).toEqual([]);
  });
});

test("CONTRIBUTING.md says where each service, package and folder is, and of none that is not there", () => {
  const text = readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8");
  const [, section = ""] = /^## Where things are\n([\s\S]*?)^## /m.exec(text) ?? [];
  const places = [...section.matchAll(/^\| ([^|]+) \|/gm)]
    .flatMap(([, cell = ""]) => [...cell.matchAll(/`([^`]+)`/g)])
    .map(([, path = ""]) => path.replace(/\/$/, ""));
  expect(places.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  const isSaid = (path: string) => places.some((place) => place === path || place.startsWith(`${path}/`));
  const folders = globSync(
    ["{services,packages,clients}/*/", "{cli,console,tools,jail,deploy,runtimes,tests,bench}/"],
    {
      cwd: ROOT,
    },
  );
  expect(folders.filter((path) => !isSaid(path.replace(/\/$/, "")))).toEqual([]);
});

test("the glossary of CONTRIBUTING.md has 30 words at most, none twice, and each is used", () => {
  const text = readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8");
  const [, section = ""] = /^## Glossary\n([\s\S]*?)^## /m.exec(text) ?? [];
  const rows = [...section.matchAll(/^\| ([^|]+) \|/gm)].map(([, words = ""]) => words).slice(2);
  const words = rows.flatMap((row) => row.split(", "));
  expect(words.length).toBeGreaterThan(20);
  expect(words.length).toBeLessThanOrEqual(30);
  expect(new Set(words).size).toBe(words.length);
  const sources = globSync("{services,packages,cli,jail}/**/src/**/*.{ts,c,h}", { cwd: ROOT }).map((path) =>
    readFileSync(join(ROOT, path), "utf8"),
  );
  const unused = words.filter(
    (word) => !sources.some((source) => new RegExp(`\\b${word}`, "i").test(source)),
  );
  expect(unused).toEqual([]);
});

/** Names of the functions and methods that a text of TypeScript or C defines. */
function definitionsOf(source: string): string[] {
  const definition =
    /^[ \t]*(?:(?:export|async|static|private|function|void|bool|int|get) )*(#?\w+)(?:<[^(]*>)?\((?!.*;$)/gm;
  return [...source.matchAll(definition)].map(([, name = ""]) => name);
}

test("every invariant names tests that exist", () => {
  const rows = readFileSync(join(ROOT, "docs/invariants.md"), "utf8").match(/^\| \d+ \|.*$/gm) ?? [];
  expect(rows.length).toBeGreaterThan(25);
  for (const row of rows) {
    const named = [...(row.split("|").at(-2) ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
    expect(named, row).not.toEqual([]);
    for (const name of named) {
      const path = name.replace(/^jail-client\//, "packages/jail-client/test/live/");
      const found = path.includes("/")
        ? [`${path}.test.ts`, path].flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
        : globSync(`*/*/test/unit/**/${path}.test.ts`, { cwd: ROOT });
      expect(found, name).not.toEqual([]);
    }
  }
});
