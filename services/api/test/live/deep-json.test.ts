/** JSON that is nested too deeply is the caller's mistake, wherever it stands: in every field of every route, known or not. */
import {
  cancelRequestSchema,
  execRequestSchema,
  fileRefSchema,
  programmaticResumeSchema,
  programmaticStartSchema,
  toolDeclarationSchema,
  toolResultSchema,
} from "@svc/contracts";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OK } from "../support/consumer.ts";
import { type Replicas, startReplicas } from "../support/replicas.ts";

const MOST = 64;
const CANCEL = "/exec/programmatic/cancel";
/** Of a whole body. */
const CANCEL_BYTES = 64 * 1024;
let made: Replicas;
beforeAll(async () => {
  made = await startReplicas(1, OPEN_LIMITS);
  await made.consume({ work: async () => OK });
});
afterAll(() => made.stop());

const post = (path: string, body: string, headers: Record<string, string> = {}) =>
  fetch(`${made.urls[0]}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
  });

const arrays = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

/** A body with a place for a value, and how deep the place is. */
interface Place {
  path: string;
  name: string;
  level: number;
  body: (value: string) => string;
}

const UNKNOWN = ["unknown", "__proto__", "toJSON"];
const EXEC = { lang: "py", code: "1" };
const START = { code: "1", tools: [{ name: "t" }] };
const RESUME = { continuation_token: "t", tool_results: [{ call_id: "call_001" }] };

/** The places of all fields of an object; `within` puts the object into a body. */
function places(
  path: string,
  schema: { shape: object },
  base: Record<string, unknown>,
  level = 1,
  within: [before: string, after: string] = ["", ""],
): Place[] {
  return [...Object.keys(schema.shape), ...UNKNOWN].map((field) => {
    const { [field]: _, ...rest } = base;
    const others = Object.entries(rest).map(
      ([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`,
    );
    const body = (value: string) =>
      `${within[0]}{${[...others, `${JSON.stringify(field)}:${value}`].join(",")}}${within[1]}`;
    return { path, name: body("…"), level, body };
  });
}

const PLACES: Place[] = [
  { path: "/exec", name: "the body", level: 0, body: (value) => value },
  ...places("/exec", execRequestSchema, EXEC),
  ...places("/exec", fileRefSchema, {}, 3, ['{"lang":"py","code":"1","files":[', "]}"]),
  ...places("/exec/programmatic", programmaticStartSchema, START),
  ...places("/exec/programmatic", toolDeclarationSchema, { name: "t" }, 3, ['{"code":"1","tools":[', "]}"]),
  ...places("/exec/programmatic", toolDeclarationSchema, { name: "t" }, 4, [
    '{"code":"1","tools":[{"function":',
    "}]}",
  ]),
  ...places("/exec/programmatic", programmaticResumeSchema, RESUME),
  ...places("/exec/programmatic", toolResultSchema, { call_id: "call_001" }, 3, [
    '{"continuation_token":"t","tool_results":[',
    "]}",
  ]),
  ...places(CANCEL, cancelRequestSchema, { request_id: "r" }),
];

describe("too deep by one level, by thousands, and without an end", () => {
  test.each(PLACES)("is 400: $path $name", async ({ path, level, body }) => {
    for (const value of [
      arrays(MOST - level + 1),
      objects(MOST - level + 1),
      arrays(3000),
      objects(20_000),
      arrays(200_000),
      "[".repeat(100_000),
    ]) {
      const text = body(value);
      if (path === CANCEL && text.length > CANCEL_BYTES) {
        expect((await post(path, text)).status).toBe(422);
        continue;
      }
      for (const headers of path === "/exec" ? [{}, { "idempotency-key": "k" }] : [{}]) {
        const answer = await post(path, text, headers);
        expect([answer.status, await answer.json()]).toEqual([
          400,
          {
            error: "invalid_json",
            message: "The request body is nested deeper than 64 levels.",
            request_id: answer.headers.get("x-request-id"),
          },
        ]);
      }
    }
  });
});

describe("as deep as may be", () => {
  test.each(PLACES)("is read: $path $name", async ({ path, level, body }) => {
    for (const value of [arrays(MOST - level), objects(MOST - level)]) {
      const answer = await post(path, body(value));
      // 503: a start that is valid, for which there is nothing here that would run it.
      expect([200, 400, 422, 503], await answer.clone().text()).toContain(answer.status);
      expect(await answer.text()).not.toContain("nested deeper");
    }
  });
});
