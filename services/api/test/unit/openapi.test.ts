import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { openApiDocument } from "../../src/openapi/document.ts";

test("docs/openapi.json is what the routes' schemas say (npm run openapi writes it)", async () => {
  const committed = await readFile(new URL("../../../../docs/openapi.json", import.meta.url), "utf8");
  expect(await openApiDocument()).toBe(committed);
});

test("every operation has an id of its own", async () => {
  const { paths } = JSON.parse(await openApiDocument()) as {
    paths: Record<string, Record<string, { operationId?: string }>>;
  };
  const ids = Object.values(paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  expect(ids).not.toContain(undefined);
  expect(new Set(ids).size).toBe(ids.length);
});
