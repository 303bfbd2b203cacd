/** The OpenAPI document: valid by itself, complete, and true to the tables that the service runs on. */
import { readFile } from "node:fs/promises";
import { Validator } from "@seriousme/openapi-schema-validator";
import { ADVICE, ERRORS, type ErrorCode } from "@svc/contracts";
import { schemaProblems } from "@svc/test-kit/system/conformance";
import { describe, expect, test } from "vitest";
import type { Document } from "../../src/openapi/complete.ts";
import { openApiDocument } from "../../src/openapi/document.ts";
import { EXAMPLES } from "../../src/openapi/examples.ts";
import { ANSWER_HEADERS, REQUEST_HEADERS } from "../../src/openapi/headers.ts";
import { OPERATIONS, refusalsOf } from "../../src/openapi/operations.ts";

const text = await openApiDocument();
const document = JSON.parse(text) as Document;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
);

test("docs/openapi.json is what the routes' schemas say (npm run openapi writes it)", async () => {
  const committed = await readFile(new URL("../../../../docs/openapi.json", import.meta.url), "utf8");
  expect(text).toBe(committed);
});

test("it is a valid document of OpenAPI 3.1", async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(text) as Record<string, unknown>);
  expect(errors ?? []).toEqual([]);
  expect(valid).toBe(true);
});

test("and the validator finds what is no such document", async () => {
  const broken = JSON.parse(text) as { paths: Record<string, { post: { responses?: unknown } }> };
  delete broken.paths["/v1/exec"]?.post.responses;
  broken.paths["/v1/upload"] = { post: { responses: [] } };
  expect((await new Validator().validate(broken)).valid).toBe(false);
});

test("every operation has an id of its own, and every description and example belongs to one", () => {
  const ids = operations.map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.toSorted()).toEqual(Object.keys(OPERATIONS).toSorted());
  expect(ids.toSorted()).toEqual(Object.keys(EXAMPLES).toSorted());
});

describe.each(operations)("$operationId", (operation) => {
  const { path, method, operationId, responses, requestBody, parameters = [], security } = operation;
  const { access } = OPERATIONS[operationId] as (typeof OPERATIONS)[string];

  test("has a summary, a description, and descriptions of its parameters and answers", () => {
    expect([operation.summary, operation.description].every(Boolean)).toBe(true);
    for (const parameter of parameters as { $ref?: string; description?: string }[]) {
      expect(parameter.$ref ?? parameter.description, JSON.stringify(parameter)).toBeTruthy();
    }
    for (const answer of Object.values(responses)) {
      expect(answer.description).toMatch(/^[A-Z`]/);
      expect(answer.description).not.toBe("Default Response");
    }
  });

  test("asks for a credential unless it is open", () => {
    expect(security).toEqual(access === "open" ? [] : undefined);
    expect(Object.hasOwn(responses, "401")).toBe(access !== "open");
  });

  test("lists headers that are described, the id of the request first", () => {
    for (const { headers = {} } of Object.values(responses)) {
      expect(Object.keys(headers)[0]).toBe("X-Request-Id");
    }
    const { 429: limited, 503: away } = responses;
    for (const answer of [limited, away]) {
      if (answer !== undefined) expect(Object.keys(answer.headers ?? {})).toContain("Retry-After");
    }
  });

  test("has whole examples of its request and of every answer with a body, which fit", () => {
    const bodies = Object.entries(requestBody?.content ?? {}).map(([type, media]) => ({
      at: `/requestBody/content/${type}`,
      media,
    }));
    for (const [status, { content = {} }] of Object.entries(responses)) {
      for (const [type, media] of Object.entries(content)) {
        bodies.push({ at: `/responses/${status}/content/${type}`, media });
      }
    }
    for (const { at, media } of bodies) {
      const examples = Object.values(media.examples ?? {}) as { $ref?: string; value?: unknown }[];
      expect(examples.length, at).toBeGreaterThan(0);
      for (const { $ref, value } of examples) {
        const example = $ref === undefined ? value : named($ref).value;
        expect(schemaProblems(document, ["paths", path, method, ...pointer(at), "schema"], example)).toEqual(
          [],
        );
      }
    }
  });

  test("names error codes that callers can read, with the statuses of the table or of its route", () => {
    for (const [status, codes] of Object.entries(refusalsOf(OPERATIONS[operationId] as never))) {
      for (const code of codes) {
        expect(ADVICE[code].who, code).not.toBe("component");
        const usual = ERRORS[code].status;
        if (usual !== Number(status)) expect(OTHER_STATUSES[code], code).toContain(Number(status));
      }
    }
  });
});

/**
 * Statuses that the table does not give: of a body that comes too slowly, of too many objects instead of bytes, and where clients
 * read 413 and 500 differently.
 */
const OTHER_STATUSES: Partial<Record<ErrorCode, readonly number[]>> = {
  invalid_request: [408],
  request_too_large: [422],
  quota_exceeded: [429],
  internal_error: [502],
};

const named = ($ref: string) =>
  document.components.examples?.[$ref.split("/").at(-1) ?? ""] as { value: unknown };

/** `/responses/200/content/application/json`: the media type is one part. */
function pointer(at: string): string[] {
  const [, ...parts] = at.split("/");
  return [
    ...parts.slice(0, parts.indexOf("content") + 1),
    parts.slice(parts.indexOf("content") + 1).join("/"),
  ];
}

test("every field of a body has a description, and an example unless its parts have them", () => {
  const bare: string[] = [];
  const visit = (value: unknown, at: string): void => {
    if (typeof value !== "object" || value === null) return;
    const { properties, example: _, examples: _e, ...rest } = value as Record<string, unknown>;
    for (const [name, field] of Object.entries((properties ?? {}) as Record<string, Field>)) {
      if (!isDescribed(field)) bare.push(`${at}.${name}`);
      visit(field, `${at}.${name}`);
    }
    for (const [key, child] of Object.entries(rest)) visit(child, `${at}.${key}`);
  };
  visit(document.components.schemas, "");
  visit(document.paths, "");
  expect(bare).toEqual([]);
});

interface Field {
  $ref?: string;
  description?: string;
  example?: unknown;
  properties?: unknown;
  items?: Field;
  anyOf?: Field[];
}

function isDescribed(field: Field): boolean {
  if (field.description === undefined) return field.$ref !== undefined;
  return Object.hasOwn(field, "example") || hasParts(field);
}

const hasParts = ({ $ref, properties, items, anyOf = [] }: Field): boolean =>
  $ref !== undefined ||
  properties !== undefined ||
  (items !== undefined && hasParts(items)) ||
  anyOf.some(hasParts);

test("examples of fields fit the fields", () => {
  const wrong: unknown[] = [];
  const visit = (value: unknown, at: string[]): void => {
    if (typeof value !== "object" || value === null) return;
    const { example, ...rest } = value as Record<string, unknown>;
    if (Object.hasOwn(value, "example") && !at.includes("examples")) {
      const problems = schemaProblems(document, at, example);
      if (problems.length > 0) wrong.push({ at: at.join("/"), problems });
    }
    for (const [key, child] of Object.entries(rest)) visit(child, [...at, key]);
  };
  visit(document.components.schemas, ["components", "schemas"]);
  expect(wrong).toEqual([]);
});

test("answers may get further fields: no object is closed", () => {
  expect(text).not.toMatch(/"additionalProperties": false/);
});

test("every header that is described is used", () => {
  for (const name of Object.keys(ANSWER_HEADERS)) expect(text).toContain(`"#/components/headers/${name}"`);
  for (const name of Object.keys(REQUEST_HEADERS))
    expect(text).toContain(`"#/components/parameters/${name}"`);
});
