/** The API's log: a line for each request, whatever became of it, and nothing in it that is the caller's own. */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type IdentityApi, startIdentityApi } from "../support/identity-api.ts";

let api: IdentityApi;
beforeAll(async () => {
  api = await startIdentityApi({ UPLOAD_MAX_REQUESTS: "1", SVC_HTTP_JSON_LIMIT: "4096" });
});
afterAll(() => api?.stop());

interface Line {
  request_id: string;
  status: number;
  principal?: string;
  [field: string]: unknown;
}

const lines = (): Line[] =>
  api.logged
    .map((line) => JSON.parse(line) as { level: string; text: string; fields: Line })
    .filter((line) => line.text === "request" && line.level === "info")
    .map(({ fields }) => fields);

/** The one line of a request. */
async function lineOf(id: string | null): Promise<Line> {
  await expect.poll(() => lines().filter(({ request_id }) => request_id === id)).toHaveLength(1);
  return lines().find(({ request_id }) => request_id === id) as Line;
}

const SECRET = "not-for-the-log";
const ID = "Abcdefghijklmnopqrstu";

function send(method: string, path: string, body?: string | object, headers: Record<string, string> = {}) {
  return fetch(`${api.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${api.signer.mint()}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
}

const code = `print("${SECRET}")`;
const file = { id: ID, storage_session_id: ID, name: `${SECRET}.txt` };
const exec = { method: "POST", route: "/v1/exec" };

describe("a refused request has a line with its error", () => {
  it.each([
    [
      "without a token",
      () => send("POST", "/v1/exec", { lang: "py", code }, { authorization: "" }),
      { ...exec, status: 401, error: "unauthorized" },
    ],
    [
      "that is not JSON",
      () => send("POST", "/v1/exec", `{${SECRET}`),
      { ...exec, status: 400, error: "invalid_json" },
    ],
    [
      "of an unknown language",
      () => send("POST", "/v1/exec", { lang: SECRET, code }),
      { ...exec, status: 400, error: "unsupported_language" },
    ],
    [
      "for a file of somebody else",
      () => send("POST", "/v1/exec", { lang: "py", code, files: [file] }),
      { ...exec, status: 403, error: "file_reference_denied", language: "python" },
    ],
    [
      "that is too large",
      () => send("POST", "/v1/exec", { lang: "py", code: "#".repeat(5000) }),
      { ...exec, status: 422, error: "request_too_large" },
    ],
    [
      "of a program that is lost",
      () =>
        send("POST", "/v1/exec/programmatic", {
          continuation_token: SECRET,
          tool_results: [{ call_id: "call_001", result: 1 }],
        }),
      { method: "POST", route: "/v1/exec/programmatic", status: 400, error: "invalid_continuation_token" },
    ],
    [
      "for a route that is not there",
      () => send("GET", `/v1/${SECRET}?q=${SECRET}`),
      { method: "GET", route: "unmatched", status: 404, error: "not_found" },
    ],
    [
      "with a URL that is none",
      () => send("GET", `/v1/files/%zz${SECRET}`),
      { method: "GET", route: "unmatched", status: 404, error: "not_found" },
    ],
    [
      "with another method",
      () => send("DELETE", "/v1/exec"),
      { method: "DELETE", route: "unmatched", status: 405, error: "method_not_allowed" },
    ],
    [
      "for a file that is not there",
      () => send("GET", `/v1/download/${ID}/${ID}?name=${SECRET}`),
      { method: "GET", route: "/v1/download/:session_id/:fileId", status: 404, error: "file_not_found" },
    ],
  ])("%s", async (_, request, expected) => {
    const answer = await request();
    const { request_id, error } = (await answer.json()) as { request_id: string; error: string };
    const line = await lineOf(request_id);
    expect(line).toMatchObject(expected);
    expect([line.status, line.error]).toEqual([answer.status, error]);
    if (expected.route === "/v1/exec") expect(line.outcome).toBe("bad_request");
    expect(line.principal === undefined).toBe(expected.status === 401 || expected.route === "unmatched");
    expect(line.ms).toEqual(expect.any(Number));
    expect(line.address).toBe("127.0.0.1");
  });

  it("that is one too many", async () => {
    const form = () => {
      const body = new FormData();
      body.append("file", new Blob(["x"]), `${SECRET}.txt`);
      return fetch(`${api.url}/v1/upload`, {
        method: "POST",
        body,
        headers: { authorization: `Bearer ${api.signer.mint()}` },
      });
    };
    const [first, second] = [await form(), await form()];
    expect([first.status, second.status]).toEqual([200, 429]);
    expect(await lineOf(first.headers.get("x-request-id"))).toMatchObject({
      route: "/v1/upload",
      status: 200,
    });
    const line = await lineOf(second.headers.get("x-request-id"));
    expect(line).toMatchObject({ route: "/v1/upload", status: 429, error: "rate_limited" });
  });

  it("that is not HTTP", async () => {
    const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
    socket.end(`${SECRET}\r\n\r\n`);
    const [, id] = /^x-request-id: (.*)\r$/m.exec(await text(socket)) ?? [];
    expect(await lineOf(id ?? "")).toMatchObject({
      route: "unmatched",
      status: 400,
      error: "invalid_request",
    });
  });
});

describe("a client that leaves before its body is complete", () => {
  /** Sends a head and a part of the body, and closes. */
  function leave(path: string, type: string, body: string, id: string): void {
    const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
    const head = [
      `POST ${path} HTTP/1.1`,
      "host: localhost",
      `authorization: Bearer ${api.signer.mint()}`,
      `content-type: ${type}`,
      "content-length: 4000",
      `x-request-id: ${id}`,
    ];
    socket.on("error", () => undefined);
    socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  }
  const part = `--b\r\ncontent-disposition: form-data; name=file; filename=a.txt\r\n\r\n${SECRET}`;

  it.each([
    ["of an upload", "/v1/upload/batch", "multipart/form-data; boundary=b", part, {}],
    ["of a program", "/v1/exec", "application/json", `{"code":"${SECRET}`, { outcome: "cancelled" }],
    ["of a program with tools", "/v1/exec/programmatic", "application/json", "{", { outcome: "cancelled" }],
  ])("%s has one line, which blames nobody", async (_of, path, type, body, more) => {
    const id = `left${path.replaceAll("/", "-")}`;
    const before = lines().length;
    leave(path, type, body, id);
    // It may leave before it is known who it is.
    const { principal: _, ...line } = await lineOf(id);
    expect(line).toEqual({
      request_id: id,
      method: "POST",
      route: path,
      status: 499,
      ms: expect.any(Number),
      address: "127.0.0.1",
      ...more,
    });
    await send("POST", "/v1/exec", { lang: "py", code: "" }, { "x-request-id": `after-${id}` });
    await lineOf(`after-${id}`);
    expect(lines().slice(before)).toHaveLength(2);
  });

  it("is no error of any component", () => {
    const errors = api.logged.filter((line) => (JSON.parse(line) as { level: string }).level === "error");
    expect(errors).toEqual([]);
  });
});

describe("an execution", () => {
  it("has a line with the id that its caller gave, its language, outcome, timings and limits", async () => {
    const answer = await send("POST", "/v1/exec", { lang: "py", code }, { "x-request-id": "given-1" });
    expect(answer.status).toBe(200);
    expect(await lineOf("given-1")).toEqual({
      ...exec,
      request_id: "given-1",
      status: 200,
      ms: expect.any(Number),
      address: "127.0.0.1",
      principal: expect.stringMatching(/^[\w-]{16}$/),
      language: "python",
      exec_id: expect.stringMatching(/^[\w-]{21}$/),
      outcome: "success",
      queue_ms: 1,
      setup_ms: 2,
      run_ms: 3,
      collect_ms: 4,
      limits_reached: ["processes"],
    });
  });

  it("that was run before says so, and has no execution", async () => {
    const headers = { "idempotency-key": SECRET };
    const run = () => send("POST", "/v1/exec", { lang: "py", code }, headers);
    const [first, second] = [await run(), await run()];
    expect(await lineOf(first.headers.get("x-request-id"))).not.toHaveProperty("replayed");
    const line = await lineOf(second.headers.get("x-request-id"));
    expect(line).toMatchObject({ replayed: true, outcome: "success", language: "python" });
    expect(line).not.toHaveProperty("exec_id");
  });

  it("has the user that its caller names, cut short, also where it is refused", async () => {
    const named = { user_id: `${"u".repeat(127)}\ud83d\ude00`, lang: "py", code: "" };
    await send("POST", "/v1/exec", named, { "x-request-id": "named-1" });
    expect((await lineOf("named-1")).user_id).toBe(`${"u".repeat(127)}\ufffd`);
    const tools: unknown[] = [];
    await send(
      "POST",
      "/v1/exec/programmatic",
      { ...named, user_id: "me", tools, code: "1", lang: "js" },
      {
        "x-request-id": "named-2",
      },
    );
    expect(await lineOf("named-2")).toMatchObject({ user_id: "me", error: "unsupported_language" });
    for (const user_id of ["", null, 7]) {
      await send("POST", "/v1/exec", { ...named, user_id }, { "x-request-id": `unnamed-${user_id}` });
      expect(await lineOf(`unnamed-${user_id}`)).not.toHaveProperty("user_id");
    }
  });

  it("is its caller's by a tag that is another for each user", async () => {
    const callers = [{}, {}, { sub: "u2" }, { tenant_id: "t2" }];
    const tags = await Promise.all(
      callers.map(async (claims) => {
        const headers = { authorization: `Bearer ${api.signer.mint({ claims })}` };
        const answer = await send("POST", "/v1/exec", { lang: "py", code: "" }, headers);
        return (await lineOf(answer.headers.get("x-request-id"))).principal;
      }),
    );
    expect(tags[0]).toBe(tags[1]);
    expect(new Set(tags).size).toBe(3);
  });
});

describe.each([
  [0, "198.51.100.7", "127.0.0.1"],
  [0, undefined, "127.0.0.1"],
  [1, "198.51.100.7", "198.51.100.7"],
  [1, "203.0.113.9, 198.51.100.7", "198.51.100.7"],
  [1, "2001:db8::7", "2001:db8::7"],
  [1, undefined, "127.0.0.1"],
  [1, "", "127.0.0.1"],
  [1, `198.51.100.7, ${SECRET}`, "127.0.0.1"],
  [1, "198.51.100.7:4711", "127.0.0.1"],
  [2, "192.0.2.1, 203.0.113.9, 198.51.100.7", "203.0.113.9"],
  [2, "198.51.100.7", "198.51.100.7"],
])("behind %i proxies, of which the last says %o", (trusted, forwarded, address) => {
  it(`the address of the client is ${address}`, async () => {
    const behind = trusted === 0 ? api : await startIdentityApi({ TRUST_PROXY: String(trusted) });
    const id = `from-${trusted}-${address}`;
    try {
      const headers = {
        "x-request-id": id,
        ...(forwarded === undefined ? {} : { "x-forwarded-for": forwarded }),
      };
      await (await fetch(`${behind.url}/v1/files/${ID}`, { headers })).text();
      const found = () =>
        behind.logged.filter((line) => line.includes('"request"') && line.includes(`"request_id":"${id}"`));
      await expect.poll(found).not.toEqual([]);
      const { fields } = JSON.parse(found().at(-1) as string) as { fields: Line };
      expect([fields.status, fields.address]).toEqual([401, address]);
    } finally {
      if (behind !== api) await behind.stop();
    }
  });
});

it("probes have no line at info", async () => {
  const answer = await fetch(`${api.url}/v1/health`, { headers: { "x-request-id": "probe" } });
  expect(answer.status).toBe(200);
  await send("POST", "/v1/exec", { lang: "py", code: "" }, { "x-request-id": "after-probe" });
  await lineOf("after-probe");
  expect(lines().filter(({ request_id }) => request_id === "probe")).toEqual([]);
});

it("no line holds what a caller sent, or who the caller is", () => {
  const all = api.logged.join("\n");
  const signatures = all.match(/eyJ[\w-]+\./g);
  for (const word of [SECRET, ID, '"u1"', '"t1"']) expect(all.includes(word), word).toBe(false);
  expect(signatures).toBeNull();
});
