import { createHash, randomBytes } from "node:crypto";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { openGrant, openSession, sealObject, sealSession } from "@svc/capabilities";
import { INTERNAL_TOKEN_HEADER, newId, ORIGINAL_FILENAME_HEADER, type RegisteredGrant } from "@svc/contracts";
import {
  asRunner,
  type Gateway,
  INTERNAL_TOKEN,
  type Input,
  keys,
  NAMESPACE,
  startGateway,
} from "@svc/test-kit/components/gateway";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const MAX_FILE = 2_000_000;
const now = () => Math.floor(Date.now() / 1000);
let made: Gateway;

beforeAll(async () => {
  made = await startGateway({ EGRESS_GATEWAY_MAX_FILE_BYTES: String(MAX_FILE), SVC_HTTP_JSON_LIMIT: "1mb" });
});
afterAll(() => made.stop());

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const error = async (call: Parameters<Gateway["call"]>[0]) => {
  const answer = await made.call(call);
  return { status: answer.status, ...answer.json() };
};
const outputOf = (grant: RegisteredGrant) =>
  openSession(
    keys,
    openGrant(keys, grant.egressGrantToken, now()),
    grant.payload.output_session_id,
    "write",
    now(),
  ).session_id;
/** An object as the file server has it, for the namespace of the grant. */
const stored = (session: string, id: string) =>
  made.fileCall({
    method: "GET",
    path: `/sessions/${session}/objects/${id}`,
    headers: { [INTERNAL_TOKEN_HEADER]: INTERNAL_TOKEN, "x-svc-namespace": NAMESPACE },
  });

describe("listing", () => {
  it("shows the enumerated inputs and the directories of their session, with handles for ids", async () => {
    const session = newId();
    const [data, ro, secret] = [
      await made.upload("up/loaded.csv", "12345", session),
      await made.upload("ro.csv", "1", session, true),
      await made.upload("secret.csv", "s", session),
    ];
    const keep = await made.upload("logs/.dirkeep", "", session);
    const grant = await made.register([data, ro]);
    const answer = await made.call(asRunner(grant).list());
    expect(answer.status).toBe(200);
    const listed = answer.json() as never as Record<string, unknown>[];
    expect(listed.map(({ name }) => name).sort()).toEqual(["logs/.dirkeep", "ro.csv", "up/loaded.csv"]);
    const handle = grant.payload.files[0]?.storage_session_id;
    expect(listed.find(({ name }) => name === "up/loaded.csv")).toEqual({
      id: expect.stringMatching(/^ceg1\./),
      name: "up/loaded.csv",
      storage_session_id: handle,
      size: 5,
      contentType: "text/csv",
      lastModified: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(listed.find(({ name }) => name === "ro.csv")).toHaveProperty("read_only", true);
    for (const { id } of [data, ro, secret, keep]) expect(answer.bytes.toString()).not.toContain(id);
    expect(answer.bytes.toString()).not.toContain(session);
  });

  it("shows at most fifty directories", async () => {
    const session = newId();
    const input = await made.upload("a", "1", session);
    for (let at = 0; at < 55; at++) await made.upload(`d${at}/.dirkeep`, "", session);
    const listed = (
      await made.call(asRunner(await made.register([input])).list())
    ).json() as never as unknown[];
    expect(listed).toHaveLength(51);
  });

  it("offers one detail only", async () => {
    const runner = asRunner(await made.register([await made.upload("a", "1")]));
    expect((await made.call(runner.list(undefined, "?detail=normalized"))).status).toBe(200);
    for (const query of [
      "?detail=simple",
      "?detail=full",
      "?detail=",
      "?detail=normalized&detail=normalized",
    ]) {
      expect(await error(runner.list(undefined, query))).toMatchObject({
        status: 400,
        error: "invalid_request",
      });
    }
  });
});

describe("reading", () => {
  it("gives the bytes with type, length, checksum and kind, and nothing of the file server's own", async () => {
    const content = randomBytes(1_500_000);
    const input = await made.upload("a b é.csv", content, newId(), true);
    const answer = await made.call(asRunner(await made.register([{ ...input, name: "other.csv" }])).read());
    expect(answer.status).toBe(200);
    expect(answer.bytes.equals(content)).toBe(true);
    expect(answer.headers).toMatchObject({
      "content-type": "text/csv",
      "content-length": "1500000",
      etag: `"${sha256(content)}"`,
      "x-read-only": "true",
      "x-original-filename": encodeURIComponent("a b é.csv"),
    });
    expect(answer.headers).not.toHaveProperty("content-disposition");
  });

  it("gives an empty file", async () => {
    const answer = await made.call(asRunner(await made.register([await made.upload("empty", "")])).read());
    expect({
      status: answer.status,
      length: answer.headers["content-length"],
      bytes: answer.bytes.length,
    }).toEqual({
      status: 200,
      length: "0",
      bytes: 0,
    });
  });

  it("gives no bytes to a reader who names the checksum of the object, and counts the call", async () => {
    const content = randomBytes(50_000);
    const input = await made.upload("a.csv", content, newId(), true);
    const grant = await made.register([input], { max_requests: 2 });
    const conditional = (tag: string, under = grant) => {
      const read = asRunner(under).read();
      return made.call({ ...read, headers: { ...read.headers, "if-none-match": tag } });
    };
    const tag = `"${sha256(content)}"`;
    const same = await conditional(tag);
    expect([same.status, same.bytes.length, same.headers.etag, same.headers["x-read-only"]]).toEqual([
      304,
      0,
      tag,
      "true",
    ]);
    const other = await conditional(`"${sha256(Buffer.from("other"))}"`);
    expect([other.status, other.bytes.equals(content)]).toEqual([200, true]);
    expect((await conditional(tag)).json()).toMatchObject({
      error: "egress_ledger_refused",
      ledger_reason: "request_budget",
    });
    const further = await made.register([input]);
    for (const loose of ["*", `W/${tag}`, `${tag}, ${tag}`, sha256(content), '""']) {
      expect((await conditional(loose, further)).status, loose).toBe(200);
    }
    await made.postJson(`/internal/egress-grants/${further.grant_id}/revoke`, {});
    expect((await conditional(tag, further)).json()).toMatchObject({ ledger_reason: "revoked" });
    const gone: Input = { id: newId(), session_id: input.session_id, name: "gone" };
    expect((await conditional(tag, await made.register([gone]))).status).toBe(404);
  });

  it("answers 404 when the input is gone from storage", async () => {
    const gone: Input = { id: newId(), session_id: newId(), name: "gone" };
    expect(await error(asRunner(await made.register([gone])).read())).toMatchObject({
      status: 404,
      error: "file_not_found",
    });
  });

  it("refuses real ids, and handles of another kind, session, object or grant", async () => {
    const session = newId();
    const [mine, other] = [await made.upload("a", "1", session), await made.upload("b", "2", session)];
    const grant = await made.register([mine]);
    const foreign = await made.register([other]);
    const claims = openGrant(keys, grant.egressGrantToken, now());
    const runner = asRunner(grant);
    const [file, foreignFile] = [grant.payload.files[0], foreign.payload.files[0]];
    if (file === undefined || foreignFile === undefined) throw new Error("no handles");
    const read = (change: Partial<typeof file>) => error(runner.read({ ...file, ...change }));
    const scope = { status: 403, error: "egress_grant_refused", reason: "scope_mismatch" };
    const malformed = { status: 400, error: "egress_grant_refused", reason: "malformed" };
    const wrongType = { status: 403, error: "egress_grant_refused", reason: "wrong_type" };

    expect(await read({ id: mine.id })).toMatchObject(malformed);
    expect(await read({ storage_session_id: session })).toMatchObject(malformed);
    expect(await read({ id: file.storage_session_id })).toMatchObject(wrongType);
    expect(await read({ storage_session_id: file.id })).toMatchObject(wrongType);
    expect(await read({ id: grant.egressGrantToken.slice(0, -1) })).toMatchObject(malformed);
    expect(await read({ id: foreignFile.id })).toMatchObject(scope);
    expect(await read({ storage_session_id: foreignFile.storage_session_id })).toMatchObject(scope);
    expect(await read({ storage_session_id: grant.payload.output_session_id })).toMatchObject(scope);
    expect(await read({ id: sealObject(keys, claims, session, other.id, "b") })).toMatchObject(scope);
    expect(await read({ storage_session_id: sealSession(keys, claims, newId(), "read") })).toMatchObject(
      scope,
    );
  });
});

describe("writing", () => {
  it.each([
    ["text/plain", Buffer.from("text")],
    ["application/json", Buffer.from('{"a": 1}')],
    ["application/json; charset=utf-8", Buffer.from("{ not json at all")],
    ["application/json", Buffer.alloc(0)],
    ["application/octet-stream", randomBytes(1000)],
    ["multipart/form-data; boundary=x", Buffer.from("--x--")],
    ["application/x-www-form-urlencoded", Buffer.from("a=b")],
    ["image/png", randomBytes(MAX_FILE)],
  ])("stores a file of type %s byte for byte, %#", async (type, bytes) => {
    const grant = await made.register([]);
    const id = newId();
    const name = "dir/é 'q\".bin";
    const answer = await made.call(
      asRunner(grant).write(bytes, { id, name, extra: { "content-type": type } }),
    );
    expect({ status: answer.status, body: answer.json() }).toEqual({
      status: 200,
      body: {
        fileId: id,
        filename: name,
        size: bytes.length,
        etag: sha256(bytes),
        lastModified: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\.\d{3}Z$/),
      },
    });
    const kept = await stored(outputOf(grant), id);
    expect(kept.status).toBe(200);
    expect(kept.bytes.equals(bytes)).toBe(true);
    expect(kept.headers["content-type"]).toBe(type);
    expect(kept.headers["x-original-filename"]).toBe(encodeURIComponent(name));
  });

  it("refuses a file over the limit before reading it, whatever its type", async () => {
    const grant = await made.register([]);
    for (const type of ["application/json", "image/png"]) {
      const write = asRunner(grant).write(Buffer.alloc(MAX_FILE + 1), { extra: { "content-type": type } });
      expect(await error(write)).toMatchObject({ status: 413, error: "file_too_large" });
    }
  });

  it("refuses a body without a length", async () => {
    const write = asRunner(await made.register([])).write(
      Readable.from([Buffer.from("a"), Buffer.from("b")]),
    );
    expect(await error(write)).toMatchObject({ status: 411, error: "length_required" });
  });

  it("refuses an id that is none and an id that is taken", async () => {
    const runner = asRunner(await made.register([]));
    const id = newId();
    expect((await made.call(runner.write("1", { id }))).status).toBe(200);
    expect(await error(runner.write("2", { id }))).toMatchObject({
      status: 403,
      error: "egress_ledger_refused",
      ledger_reason: "file_id_reused",
    });
    expect(await error(runner.write("1", { id: "short" }))).toMatchObject({
      status: 400,
      error: "invalid_id",
    });
    expect(await error(runner.write("1", { id: `${"a".repeat(20)}%2F` }))).toMatchObject({
      error: "invalid_id",
    });
  });

  it.each([
    ["%2e%2e%2Fx", "invalid_file_name"],
    ["/etc/passwd", "invalid_file_name"],
    ["a%00b", "invalid_file_name"],
    ["a%5Cb", "invalid_file_name"],
    ["%zz", "invalid_file_name"],
    ["%ff", "invalid_file_name"],
    ["", "invalid_file_name"],
    ["x".repeat(257), "invalid_file_name"],
    ["a/b/c/d/e/f/g/h/i/j/k", "invalid_file_name"],
  ])("refuses the name %s", async (encoded, code) => {
    const write = asRunner(await made.register([])).write("1", {
      extra: { [ORIGINAL_FILENAME_HEADER]: encoded },
    });
    expect(await error(write)).toMatchObject({ status: 400, error: code });
  });

  it("refuses a call without a name", async () => {
    const { headers, ...write } = asRunner(await made.register([])).write("1");
    const { [ORIGINAL_FILENAME_HEADER]: _, ...others } = headers ?? {};
    expect(await error({ ...write, headers: others })).toMatchObject({
      status: 400,
      error: "missing_headers",
    });
  });

  it("refuses every session but the one that may be written", async () => {
    const grant = await made.register([await made.upload("a", "1")]);
    const foreign = await made.register([]);
    const claims = openGrant(keys, grant.egressGrantToken, now());
    const read = grant.payload.files[0]?.storage_session_id ?? "";
    const write = (session: string) => error(asRunner(grant).write("x", { session }));
    const scope = { status: 403, reason: "scope_mismatch" };
    expect(await write(read)).toMatchObject(scope);
    expect(await write(foreign.payload.output_session_id)).toMatchObject(scope);
    expect(await write(sealSession(keys, claims, newId(), "write"))).toMatchObject(scope);
    expect(await write(sealSession(keys, claims, claims.read_sessions[0] ?? "", "write"))).toMatchObject(
      scope,
    );
    expect(await write(outputOf(grant))).toMatchObject({ status: 400, reason: "malformed" });
  });

  it("keeps nothing of a body that breaks off", async () => {
    const before = await made.files.storedFiles();
    const { path, headers } = asRunner(await made.register([])).write("");
    const { hostname, port } = new URL(made.gateway.url);
    const socket = connect(Number(port), hostname);
    const head = Object.entries({ ...headers, host: "gateway", "content-length": "1000" });
    socket.write(`PUT ${path} HTTP/1.1\r\n${head.map((line) => line.join(": ")).join("\r\n")}\r\n\r\n`);
    socket.write("x".repeat(500));
    await sleep(200);
    socket.destroy();
    await expect.poll(() => made.files.storedFiles()).toEqual(before);
  });

  it("a refused writer that is still sending reads why", async () => {
    const grant = await made.register([]);
    await made.postJson(`/internal/egress-grants/${grant.grant_id}/revoke`, {});
    for (let round = 0; round < 5; round++) {
      const answer = await error(asRunner(grant).write(Buffer.alloc(MAX_FILE)));
      expect(answer).toMatchObject({ status: 403, ledger_reason: "revoked" });
    }
  });
});

describe("beyond its routes the gateway leads nowhere", () => {
  it.each([
    ["GET", "/", 404],
    ["GET", "/sessions", 404],
    ["POST", "/sessions", 404],
    ["DELETE", "/sessions/x/objects/y", 405],
    ["POST", "/sessions/x/objects", 405],
    ["POST", "/sessions/x/commit", 404],
    ["GET", "/sessions/x/objects/y/metadata", 404],
    ["GET", "/sessions/x/objects/../../../internal", 404],
    ["GET", "/internal/egress-grants", 405],
    ["GET", "/v1/health", 404],
    ["GET", "http://127.0.0.1:1/sessions", 404],
  ] as const)("%s %s is %i", async (method, path, status) => {
    const grant = await made.register([]);
    const { hostname, port } = new URL(made.gateway.url);
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname);
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk;
      });
      socket.on("close", () => resolve(text)).on("error", reject);
      const token = `x-svc-egress-grant: ${grant.egressGrantToken}`;
      socket.write(`${method} ${path} HTTP/1.1\r\nhost: g\r\nconnection: close\r\n${token}\r\n\r\n`);
    });
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toMatch(/"error":"(not_found|method_not_allowed)"/);
  });

  it("health, readiness and metrics are open", async () => {
    for (const path of ["/live", "/health", "/ready", "/metrics"]) {
      expect((await made.call({ method: "GET", path })).status).toBe(200);
    }
  });
});

describe("without the file server", () => {
  it("reads, lists and writes fail as the storage's fault and work again when it is back", async () => {
    const grant = await made.register([await made.upload("a", "1")]);
    const runner = asRunner(grant);
    await made.files.kill();
    for (const call of [runner.read(), runner.list(), runner.write("x")]) {
      expect(await error(call)).toMatchObject({ status: 503, error: "storage_unavailable" });
    }
    await made.files.restart();
    expect((await made.call(runner.read())).bytes.toString()).toBe("1");
    expect((await made.call(runner.write("x"))).status).toBe(200);
  });
});
