import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { HttpServer } from "../../src/index.ts";
import { testApp } from "../support/app.ts";

const LIMIT = 64 * 1024;
const JSON_TYPE = { "content-type": "application/json" };
const apps: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

function echo() {
  const { app } = testApp({ bodyLimit: LIMIT });
  apps.push(app);
  const body = z.object({ name: z.string(), items: z.array(z.object({ n: z.number() })).optional() });
  app.post("/echo", { schema: { body } }, async (request) => ({
    body: request.body,
    extra: typeof ({} as { x?: 1 }).x,
    of: typeof (request.body as { x?: 1 }).x,
  }));
  app.post("/any", { schema: { body: z.object({ value: z.unknown() }) } }, async (request) => request.body);
  return app;
}

const PLAIN = { extra: "undefined", of: "undefined" };
const post = (payload: string | Buffer, headers: Record<string, string> = JSON_TYPE) =>
  echo().inject({ method: "POST", url: "/echo", headers, payload });

describe("JSON bodies", () => {
  it.each([
    ["nothing", ""],
    ["half an object", '{"name":'],
    ["an object and more", '{"name":"a"}{}'],
    ["words", "name=a"],
    ["single quotes", "{'name':'a'}"],
    ["a number beyond JSON", '{"name":NaN}'],
    ["an array", "[]"],
    ["a string", '"name"'],
    ["a number", "5"],
    ["null", "null"],
    ["true", "true"],
  ])("%s is invalid_json", async (_what, payload) => {
    const answer = await post(payload);
    expect(answer.statusCode).toBe(400);
    expect(answer.json().error).toBe("invalid_json");
  });

  it.each([
    [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    [Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])],
    [Buffer.from('{"name":"é"}', "latin1")],
    [Buffer.from('{"name":"a"}', "utf16le")],
  ])("bytes that are no UTF-8 are invalid_json, not other text: %j", async (payload) => {
    const answer = await post(payload);
    expect(answer.statusCode).toBe(400);
    expect(answer.json().error).toBe("invalid_json");
  });

  it("a nesting of ten thousand levels neither breaks the process nor is reported as ours", async () => {
    const deep = "[".repeat(10_000) + "]".repeat(10_000);
    const known = await post(`{"name":"a","items":${deep}}`);
    expect(known.statusCode).toBe(400);
    expect(known.json().error).toBe("invalid_request");
    const unknown = await post(`{"name":"a","other":${deep}}`);
    expect(unknown.json()).toEqual({ body: { name: "a" }, ...PLAIN });
  });

  it.each([
    ["__proto__", '{"name":"a","__proto__":{"x":1}}'],
    ["__proto__ in escapes", '{"name":"a","\\u005f_proto__":{"x":1}}'],
    ["__proto__ that is not an object", '{"name":"a","__proto__":null}'],
    ["a nested __proto__", '{"name":"a","b":[{"__proto__":{"x":1}}]}'],
    ["a constructor with a prototype", '{"name":"a","constructor":{"prototype":{"x":1}}}'],
  ])("%s is an unknown field like any other", async (_what, payload) => {
    expect((await post(payload)).json()).toEqual({ body: { name: "a" }, ...PLAIN });
  });

  it("__proto__ where a field is known stands for no field", async () => {
    for (const payload of ['{"__proto__":{"name":"a"}}', '{"name":"a","items":[{"__proto__":{"n":1}}]}']) {
      expect((await post(payload)).json().error).toBe("invalid_request");
    }
  });

  it("a value that may be any JSON comes as it was sent, whatever its keys are", async () => {
    const value = '{"__proto__":{"x":1},"constructor":{"prototype":{"x":2}},"a":[{"__proto__":null}]}';
    const payload = `{"value":${value}}`;
    const answer = await echo().inject({ method: "POST", url: "/any", headers: JSON_TYPE, payload });
    expect([answer.statusCode, answer.body]).toEqual([200, payload]);
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  it("unknown fields are ignored, and names of built-in methods are ordinary ones", async () => {
    const answer = await post('{"name":"a","toString":1,"hasOwnProperty":2,"constructor":"c","then":3}');
    expect(answer.json().body).toEqual({ name: "a" });
  });

  it("text with every kind of character arrives as it was sent", async () => {
    const name = 'a\u0000\u001f"\\/\u2028é🎉$&$1';
    const answer = await post(JSON.stringify({ name }));
    expect(answer.json().body.name).toBe(name);
  });

  it("a byte more than the limit is request_too_large, the limit itself is not", async () => {
    const frame = '{"name":""}'.length;
    expect((await post(`{"name":"${"a".repeat(LIMIT - frame)}"}`)).statusCode).toBe(200);
    const answer = await post(`{"name":"${"a".repeat(LIMIT - frame + 1)}"}`);
    expect(answer.statusCode).toBe(413);
    expect(answer.json()).toMatchObject({
      error: "request_too_large",
      message: "The request body is larger than 64 KiB.",
    });
  });

  it.each([
    ["text/plain"],
    ["application/x-www-form-urlencoded"],
    ["multipart/form-data; boundary=x"],
    ["application/octet-stream"],
    ["application/jsonp"],
    ["text/json"],
    ["application/xml"],
    ["nonsense"],
  ])("the content type %s is refused", async (type) => {
    const answer = await post('{"name":"a"}', { "content-type": type });
    expect(answer.statusCode).toBe(400);
    expect(answer.json().error).toBe("invalid_content_type");
  });

  it.each([["application/json"], ["application/json; charset=utf-8"], ["Application/JSON;charset=UTF-8"]])(
    "the content type %s is JSON",
    async (type) => {
      expect((await post('{"name":"a"}', { "content-type": type })).statusCode).toBe(200);
    },
  );

  it("no body at all is invalid_json", async () => {
    const answer = await echo().inject({ method: "POST", url: "/echo" });
    expect(answer.statusCode).toBe(400);
    expect(answer.json().error).toBe("invalid_json");
  });
});

describe("fields", () => {
  it.each([
    ["{}", "name"],
    ['{"name":5}', "name"],
    ['{"name":null}', "name"],
    ['{"name":"a","items":{}}', "items"],
    ['{"name":"a","items":[{"n":1},{"n":"2"}]}', "items[1].n"],
    ['{"name":"a","items":[{"n":1e999}]}', "items[0].n"],
  ])("%s is invalid_request and names %s", async (payload, path) => {
    const answer = await post(payload);
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({ error: "invalid_request", details: [{ path }] });
    expect(answer.json().message).toContain(path);
  });

  it("all wrong fields are named at once", async () => {
    const answer = await post('{"items":[{"n":"1"},{}]}');
    const paths = answer.json().details.map(({ path }: { path: string }) => path);
    expect(paths.sort()).toEqual(["items[0].n", "items[1].n", "name"]);
  });
});
