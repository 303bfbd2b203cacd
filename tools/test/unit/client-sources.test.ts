/** What the TypeScript client has of the service's own tables is up to date. */
import { readFile } from "node:fs/promises";
import { clientErrors, clientTypes } from "@svc/tools/pages/client-sources";
import { expect, test } from "vitest";

const source = (name: string) =>
  readFile(new URL(`../../../packages/client/src/${name}.generated.ts`, import.meta.url), "utf8");

test("types and errors of the client are those of the service (npm run openapi)", async () => {
  expect(await source("api")).toBe(await clientTypes());
  expect(await source("errors")).toBe(clientErrors());
});
