import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { configurationPage, errorsPage, secretsPage } from "../../src/docs/reference.ts";

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
