import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { openApiDocument } from "../../src/openapi/document.ts";

test("docs/openapi.json is what the routes' schemas say (npm run openapi writes it)", async () => {
  const committed = await readFile(new URL("../../../../docs/openapi.json", import.meta.url), "utf8");
  expect(await openApiDocument()).toBe(committed);
});
