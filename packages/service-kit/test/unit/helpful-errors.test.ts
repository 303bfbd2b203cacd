/** Errors that tell callers what came, where it is wrong, and what is wanted. */
import { afterAll, describe, expect, it } from "vitest";
import { testApp } from "../support/app.ts";

const { app } = testApp({ bodyLimit: 64 * 1024 });
app.post("/v1/things", async () => ({}));
app.get("/v1/things/:id/parts/:part", async () => ({}));
afterAll(() => app.close());

const post = async (payload: string, headers: Record<string, string>) => {
  const answer = await app.inject({ method: "POST", url: "/v1/things", headers, payload });
  return answer.json() as { error: string; message: string };
};

describe("a refused content type", () => {
  it.each([
    ["application/x-www-form-urlencoded", "application/x-www-form-urlencoded"],
    ["text/plain; charset=utf-8", "text/plain; charset=utf-8"],
    [`x/${"y".repeat(1000)}`, `x/${"y".repeat(62)}`],
  ])("%s is named beside the one that is wanted", async (type, shown) => {
    expect(await post("a=b", { "content-type": type })).toMatchObject({
      error: "invalid_content_type",
      message: `Send Content-Type: application/json (got ${shown}).`,
    });
  });
});

describe("a body that is not JSON", () => {
  it.each([
    ["", "The request body is empty; send a JSON object."],
    ['{"code": "print(1)"', "The request body is not valid JSON: unexpected end at character 20."],
    ['{"code": }', 'The request body is not valid JSON: unexpected "}" at character 10.'],
    ["{'a': 1}", 'The request body is not valid JSON: unexpected "\'" at character 2.'],
    ["name=a", 'The request body is not valid JSON: unexpected "n" at character 1.'],
    ["[😀]", 'The request body is not valid JSON: unexpected "😀" at character 2.'],
  ])("%j is told where it is wrong", async (payload, message) => {
    const answer = await post(payload, { "content-type": "application/json" });
    expect(answer).toMatchObject({ error: "invalid_json", message });
  });
});

describe("a path without its prefix", () => {
  it.each([
    ["POST", "/things", "POST /v1/things"],
    ["GET", "/things?x=1", "POST /v1/things"],
    ["GET", "/things/a/parts/%3Cb%3E", "GET /v1/things/:id/parts/:part"],
  ] as const)("%s %s: the route that is meant", async (method, url, meant) => {
    const answer = await app.inject({ method, url });
    expect(answer.statusCode).toBe(404);
    expect(answer.json().message).toBe(`There is no such route; did you mean ${meant}?`);
  });

  it.each(["/", "/other", "/v1/other", "/v2/things", "/v1/v1/things"])("%s is just unknown", async (url) => {
    expect((await app.inject({ method: "GET", url })).json().message).toBe("There is no such route.");
  });
});
