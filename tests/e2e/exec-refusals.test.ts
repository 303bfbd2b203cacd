/** Requests that are refused: which code, which status, which place is named. Nothing of them runs. */

import { Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type Service, startService } from "@svc/test-kit/system/service";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const BODY_LIMIT = 2 * 1024 * 1024;
let system: Service;
let api: Api;

beforeAll(async () => {
  system = await startService({ ...OPEN_LIMITS, SVC_HTTP_JSON_LIMIT: String(BODY_LIMIT) });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const JSON_TYPE = { "content-type": "application/json" };
const SOME_ID = "AAAAAAAAAAAAAAAAAAAAA";
const ref = (change: object) => ({ id: SOME_ID, storage_session_id: SOME_ID, name: "a.txt", ...change });
const withRefs = (...files: unknown[]) => ({ lang: "bash", code: "", files });

describe("fields", () => {
  test.each<[name: string, body: Record<string, unknown>, path: string]>([
    ["no code", { lang: "py" }, "code"],
    ["null as code", { lang: "py", code: null }, "code"],
    ["a number as code", { lang: "py", code: 1 }, "code"],
    ["an array as code", { lang: "py", code: ["print(1)"] }, "code"],
    ["no language", { code: "" }, "lang"],
    ["null as language", { lang: null, code: "" }, "lang"],
    ["an empty language", { lang: "", code: "" }, "lang"],
    ["a number as language", { lang: 3, code: "" }, "lang"],
    ["a number as version", { lang: "py", code: "", version: 3 }, "version"],
    ["text as args", { lang: "py", code: "", args: "-c x" }, "args"],
    ["an object as args", { lang: "py", code: "", args: { 0: "a" } }, "args"],
    ["a number among args", { lang: "py", code: "", args: ["a", 1] }, "args[1]"],
    ["null among args", { lang: "py", code: "", args: [null] }, "args[0]"],
    ["NUL in an arg", { lang: "py", code: "", args: ["a", "b\0c"] }, "args[1]"],
    ["an arg that is too long", { lang: "py", code: "", args: ["ü".repeat(50_001)] }, "args[0]"],
    ["too many args", { lang: "py", code: "", args: Array(257).fill("a") }, "args"],
    ["a number as stdin", { lang: "py", code: "", stdin: 1 }, "stdin"],
    ["text as files", { lang: "py", code: "", files: "a.txt" }, "files"],
    ["an object as files", { lang: "py", code: "", files: {} }, "files"],
    ["zero as run_timeout", { lang: "py", code: "", run_timeout: 0 }, "run_timeout"],
    ["a negative run_timeout", { lang: "py", code: "", run_timeout: -1 }, "run_timeout"],
    ["half a millisecond", { lang: "py", code: "", run_timeout: 0.5 }, "run_timeout"],
    ["text as run_timeout", { lang: "py", code: "", run_timeout: "1000" }, "run_timeout"],
    ["zero as timeout", { lang: "py", code: "", timeout: 0 }, "timeout"],
  ])("%s: invalid_request that names %s", async (_name, body, path) => {
    const answer = await api.tryExec(body);
    expect([answer.status, answer.refusal.error]).toEqual([400, "invalid_request"]);
    expect(answer.refusal.details?.map((detail) => detail.path)).toContain(path);
  });

  test("several wrong fields are all named", async () => {
    const { details } = (await api.tryExec({ lang: 1, code: 2, args: [3] })).refusal;
    expect(details?.map(({ path }) => path)).toEqual(expect.arrayContaining(["lang", "code", "args[0]"]));
  });

  test.each(["brainfuck", "__proto__", "constructor", "rust", "py ", "../python"])(
    "language %j: unsupported_language, with the list of what is installed",
    async (lang) => {
      const { status, refusal } = await api.tryExec({ lang, code: "" });
      expect([status, refusal.error]).toEqual([400, "unsupported_language"]);
      for (const installed of ["python 3.", "bash 5.", "javascript 24.", "typescript 24.", "node 24."]) {
        expect(refusal.message).toContain(installed);
      }
      expect(refusal.message.includes("./svc up --languages rs adds rust")).toBe(lang === "rust");
    },
  );

  test.each(["2", "3.99", "nonsense", "99.x", "<1"])("version %j: unsupported_version", async (version) => {
    const { status, refusal } = await api.tryExec({ lang: "py", code: "", version });
    expect([status, refusal.error]).toEqual([400, "unsupported_version"]);
    expect(refusal.message).toMatch(/python 3\.\d+\.\d+/);
    expect(refusal.message).not.toContain("bash");
  });
});

describe("file references", () => {
  test.each<[name: string, refs: unknown[], paths: string[]]>([
    ["no object", ["a.txt"], ["files[0]"]],
    ["null", [null], ["files[0]"]],
    ["no id", [ref({ id: undefined })], ["files[0].id"]],
    ["a short id", [ref({ id: "short" })], ["files[0].id"]],
    ["a UUID", [ref({ id: "123e4567-e89b-12d3-a456-426614174000" })], ["files[0].id"]],
    [
      "a path as session",
      [ref({ storage_session_id: "../../../../etc/passwd" })],
      ["files[0].storage_session_id"],
    ],
    ["no name", [ref({}), ref({ name: undefined })], ["files[1].name"]],
    ["an empty name", [ref({ name: "" })], ["files[0].name"]],
    ["an absolute name", [ref({ name: "/etc/passwd" })], ["files[0].name"]],
    ["a name that climbs", [ref({ name: "a/../../b" })], ["files[0].name"]],
    ["a dot segment", [ref({ name: "./a" })], ["files[0].name"]],
    ["an empty segment", [ref({ name: "a//b" })], ["files[0].name"]],
    ["a trailing slash", [ref({ name: "a/" })], ["files[0].name"]],
    ["a backslash", [ref({ name: "a\\b" })], ["files[0].name"]],
    ["NUL", [ref({ name: "a\0b" })], ["files[0].name"]],
    ["a line break", [ref({ name: "a\nb" })], ["files[0].name"]],
    ["half a surrogate pair", [ref({ name: "a\ud800" })], ["files[0].name"]],
    ["257 characters", [ref({ name: `${"a/".repeat(1)}${"b".repeat(255)}` })], ["files[0].name"]],
    ["11 segments", [ref({ name: "a/b/c/d/e/f/g/h/i/j/k" })], ["files[0].name"]],
    ["an unknown kind", [ref({ kind: "group" })], ["files[0].kind"]],
    ["an agent without id", [ref({ kind: "agent" })], ["files[0].resource_id"]],
    ["an agent with a strange id", [ref({ kind: "agent", resource_id: "a b" })], ["files[0].resource_id"]],
    ["an agent with a version", [ref({ kind: "agent", resource_id: "a", version: 1 })], ["files[0].version"]],
    ["a user file with a version", [ref({ version: 1 })], ["files[0].version"]],
    ["a skill without version", [ref({ kind: "skill", resource_id: "s" })], ["files[0].version"]],
    ["text as version", [ref({ kind: "skill", resource_id: "s", version: "1" })], ["files[0].version"]],
    ["one path twice", [ref({}), ref({ name: "b" }), ref({})], ["files[0].name", "files[2].name"]],
    [
      "a path below a file",
      [ref({ name: "x" }), ref({ name: "d/e" }), ref({ name: "d/e/f" })],
      ["files[1].name", "files[2].name"],
    ],
  ])("%s: invalid_file_reference", async (_name, refs, paths) => {
    const { status, refusal } = await api.tryExec(withRefs(...refs));
    expect([status, refusal.error]).toEqual([400, "invalid_file_reference"]);
    expect(refusal.details?.map(({ path }) => path)).toEqual(paths);
  });

  test("257 references are too many", async () => {
    const refs = Array.from({ length: 257 }, (_, index) => ref({ name: `f${index}` }));
    const { status, refusal } = await api.tryExec(withRefs(...refs));
    expect([status, refusal.error]).toEqual([400, "too_many_files"]);
  });

  test("a reference to nothing, or of another owner, is denied at its index", async () => {
    const own = await api.stage("a.txt", "own");
    const agents = await api.stage("b.txt", "agent's", { kind: "agent", id: "agent-1" });
    const skill = { ...(await api.stage("c.txt", "skill's", { kind: "skill", id: "s", version: "2" })) };
    const denied = [
      ref({ name: "x" }),
      { ...own, storage_session_id: SOME_ID },
      { ...own, kind: "agent", resource_id: "agent-1" },
      agents,
      { ...agents, kind: "agent", resource_id: "agent-2" },
      { ...skill, kind: "skill", resource_id: "s", version: 3 },
      { ...skill, kind: "agent", resource_id: "s" },
    ];
    for (const bad of denied) {
      const { status, refusal } = await api.tryExec(withRefs({ ...own, name: "first" }, bad));
      expect([status, refusal.error], JSON.stringify(bad)).toEqual([403, "file_reference_denied"]);
      expect(refusal.details?.map(({ path }) => path)).toEqual(["files[1]"]);
    }
  });
});

describe("bodies and routes", () => {
  test.each(["", "{", "[]", '"text"', "null", "1", "undefined", '{"a":NaN}'])(
    "the body %j: invalid_json",
    async (body) => {
      const answer = await api.send("POST", "/exec", { headers: JSON_TYPE, body });
      expect([answer.status, answer.refusal.error]).toEqual([400, "invalid_json"]);
    },
  );

  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "nonsense",
  ])("the content type %s: invalid_content_type", async (type) => {
    const body = JSON.stringify({ lang: "bash", code: "true" });
    const answer = await api.send("POST", "/exec", { headers: { "content-type": type }, body });
    expect([answer.status, answer.refusal.error]).toEqual([400, "invalid_content_type"]);
  });

  test.each(["application/json", "application/json; charset=utf-8", "Application/JSON"])(
    "the content type %s is JSON",
    async (type) => {
      const body = JSON.stringify({ lang: "bash", code: "true" });
      expect((await api.send("POST", "/exec", { headers: { "content-type": type }, body })).status).toBe(200);
    },
  );

  test.each([
    '"__proto__":{"lang":"python"}',
    '"constructor":{"prototype":{"args":["x"]}}',
    '"x":[{"__proto__":1}]',
  ])("the unknown field %s is ignored, as every unknown one is", async (field) => {
    const body = `{"lang":"bash","code":"echo $#",${field}}`;
    const answer = await api.send("POST", "/exec", { headers: JSON_TYPE, body });
    expect([answer.status, answer.json<{ stdout: string }>().stdout]).toEqual([200, "0\n"]);
  });

  test.each([
    ['"args":[{"__proto__":1}]', "invalid_request"],
    ['"files":[{"__proto__":{"name":"a"}}]', "invalid_file_reference"],
  ])("%s names nothing that is wanted: %s", async (field, code) => {
    const body = `{"lang":"bash","code":"true",${field}}`;
    const answer = await api.send("POST", "/exec", { headers: JSON_TYPE, body });
    expect([answer.status, answer.refusal.error]).toEqual([400, code]);
  });

  test("a body over the limit is a permanent refusal: 422", async () => {
    const fits = await api.tryExec({ lang: "bash", code: `#${"x".repeat(BODY_LIMIT - 100)}` });
    expect(fits.status).toBe(200);
    const { status, refusal } = await api.tryExec({ lang: "bash", code: `#${"x".repeat(BODY_LIMIT)}` });
    expect([status, refusal.error]).toEqual([422, "request_too_large"]);
  });

  test("unknown routes are 404, wrong methods 405 with Allow", async () => {
    for (const path of ["/", "/nothing", "/exec/", "/exec/other", "/download", "/../metrics2"]) {
      const answer = await api.send("GET", path);
      expect([answer.status, answer.refusal.error], path).toEqual([404, "not_found"]);
    }
    for (const [method, path, allow] of [
      ["GET", "/exec", "POST"],
      ["DELETE", "/exec", "POST"],
      ["GET", "/upload", "POST"],
      ["POST", `/download/${SOME_ID}/${SOME_ID}`, "GET"],
      ["PUT", `/files/${SOME_ID}/${SOME_ID}`, "DELETE"],
      ["POST", "/health", "GET"],
    ] as const) {
      const answer = await api.send(method, path);
      expect([answer.status, answer.refusal.error], `${method} ${path}`).toEqual([405, "method_not_allowed"]);
      expect(answer.headers.get("allow")).toContain(allow);
    }
  });

  test("every answer has a request id: the caller's when it is fit, else a new one", async () => {
    const ask = (id: string) => api.send("GET", "/health", { headers: { "x-request-id": id } });
    for (const id of ["a", "trace:1.2_3-4", "x".repeat(128)]) {
      expect((await ask(id)).headers.get("x-request-id")).toBe(id);
    }
    for (const id of ["", "two words", "x".repeat(129), "ü", "a/b"]) {
      const echoed = (await ask(encodeURIComponent(id) === id ? id : `${id}`.replace("ü", "%C3"))).headers;
      expect(echoed.get("x-request-id")).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
      expect(echoed.get("x-request-id")).not.toBe(id);
    }
    const refused = await api.tryExec({ lang: "none", code: "" }, { headers: { "x-request-id": "mine-1" } });
    expect(refused.refusal.request_id).toBe("mine-1");
    expect(refused.headers.get("x-request-id")).toBe("mine-1");
    const unknown = await api.send("GET", "/nothing");
    expect(unknown.refusal.request_id).toBe(unknown.headers.get("x-request-id"));
  });

  test("error bodies hold what is documented and nothing of the inside", async () => {
    const { refusal, text, headers } = await api.tryExec({ lang: "py", code: 5 });
    expect(Object.keys(refusal).sort()).toEqual(["details", "error", "message", "request_id"]);
    expect(headers.get("content-type")).toMatch(/^application\/json/);
    expect(text).not.toMatch(/127\.0\.0\.1|localhost|node_modules|\.ts|\bat /);
    const many = await api.tryExec(withRefs(...Array(200).fill({ name: "x".repeat(5000) })));
    expect(many.bytes.length).toBeLessThanOrEqual(16 * 1024);
  });
});
