/** The page on these tests says what they are. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CLASSES, makePage, PAGE, testFiles } from "./table.ts";

test("docs/escape-tests.md lists every test file under its class, as `npm run docs` writes it", () => {
  const page = readFileSync(PAGE, "utf8");
  expect(page).toBe(makePage(page));
});

test("every folder of tests is a class of the page", () => {
  const folders = [...testFiles().keys()].filter((folder) => folder !== "docs");
  expect(folders.filter((folder) => CLASSES[folder] === undefined)).toEqual([]);
});
