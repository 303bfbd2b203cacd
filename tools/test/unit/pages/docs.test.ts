import { existsSync, globSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { configurationPage, errorsPage, secretsPage } from "../../../src/pages/reference.ts";

const committed = (page: string) => readFile(new URL(`../../../../docs/${page}`, import.meta.url), "utf8");

test("docs/configuration.md states what the code knows", async () => {
  expect(await committed("configuration.md")).toBe(configurationPage());
});

test("docs/errors.md has a row for every error code", async () => {
  expect(await committed("errors.md")).toBe(errorsPage());
});

test("docs/secrets.md says who holds which secret", async () => {
  expect(await committed("secrets.md")).toBe(secretsPage());
});

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const PAGES = [...globSync("*.md", { cwd: ROOT }), ...globSync("docs/*.md", { cwd: ROOT })];

describe.each(PAGES)("%s", (page) => {
  const text = readFileSync(join(ROOT, page), "utf8");

  test("links only to files that exist", () => {
    const links = [...text.matchAll(/\]\(([^)#:]+)(#[^)]*)?\)/g)].map(([, target = ""]) => target);
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(page), link)))).toEqual([]);
  });

  test("names only source files that exist", () => {
    const paths = [
      ...text.matchAll(/`((?:services|packages|jail|cli|tools|runtimes|tests|bench)\/[\w./-]+\.\w+)`/g),
    ];
    expect(paths.map(([, path = ""]) => path).filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});

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
