/** The check of answers against the OpenAPI document finds what is not as the document says. */
import { expect, test } from "vitest";
import { expectDocumented, problemsOfAnswer } from "../../src/system/conformance.ts";

const JSON_TYPE = { "content-type": "application/json; charset=utf-8", "x-request-id": "r" };
const LIMITED = {
  ...JSON_TYPE,
  "ratelimit-limit": "1",
  "ratelimit-remaining": "1",
  "ratelimit-reset": "1",
  "ratelimit-policy": "1;w=1",
};
const came = (status: number, body: unknown, headers: Record<string, string> = LIMITED) => ({
  status,
  headers: new Headers(headers),
  text: JSON.stringify(body),
});
const cancelled = { status: "cancelled", cancelled: 0 };
const error = (code: string) => ({ error: code, message: "m", request_id: "r" });
const problems = (answer: ReturnType<typeof came>, path = "/v1/exec/programmatic/cancel", method = "POST") =>
  problemsOfAnswer(method, path, answer);

test("an answer that is as the document says", () => {
  expect(problems(came(200, cancelled))).toEqual([]);
  expect(problems(came(400, error("invalid_json")))).toEqual([]);
  expect(problems(came(404, error("not_found"), JSON_TYPE), "/v1/nothing")).toEqual([]);
  expect(() => expectDocumented("POST", "/v1/exec/programmatic/cancel", came(200, cancelled))).not.toThrow();
});

test.each([
  ["a status", came(201, cancelled), /does not name the status 201/],
  ["a field that is missing", came(200, { status: "cancelled" }), /'cancelled'/],
  ["a value", came(200, { status: "cancelled", cancelled: "none" }), /\/cancelled must be integer/],
  ["a further field", came(200, { ...cancelled, more: 1 }), /"more"/],
  ["a code", came(400, error("file_not_found")), /the code file_not_found is not named/],
  ["a code of another status", came(400, error("request_too_large")), /request_too_large is not named/],
  ["a header that is missing", came(200, cancelled, JSON_TYPE), /the header RateLimit-Limit is missing/],
  [
    "a media type",
    came(200, cancelled, { ...LIMITED, "content-type": "text/plain" }),
    /the media type text\/plain is not named/,
  ],
  ["a body that is no JSON", { ...came(200, 0), text: "<html>" }, /required property/],
  ["another request's id", came(400, { ...error("invalid_json"), request_id: "x" }), /X-Request-Id/],
])("%s that the document does not name", (_what, answer, problem) => {
  expect(problems(answer).join("; ")).toMatch(problem);
  expect(() => expectDocumented("POST", "/v1/exec/programmatic/cancel", answer)).toThrow(
    /against docs\/openapi\.json/,
  );
});

test("an answer of no operation may only say that there is none", () => {
  expect(problems(came(200, cancelled), "/v1/nothing")).toEqual(["no operation answers 200 undefined"]);
  expect(problems(came(405, error("method_not_allowed")), "/v1/exec", "DELETE")).toEqual([]);
});
