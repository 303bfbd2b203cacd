/**
 * The OpenAPI document against the running service: its examples are sent, and every error code that it names is provoked here or
 * in the file that is named below. `Api` holds each answer against the document.
 */
import { readFileSync } from "node:fs";
import type { ToolCallRequired, UploadedFile } from "@svc/contracts";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { type Answer, Api, downloadPath, type FormPart } from "@svc/test-kit/system/api";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const DOCUMENT = new URL("../../docs/openapi.json", import.meta.url);
interface Media {
  examples?: Record<string, { value?: unknown }>;
}
interface Operation {
  operationId: string;
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { content?: Record<string, Media> }>;
}
const { paths } = JSON.parse(readFileSync(DOCUMENT, "utf8")) as {
  paths: Record<string, Record<string, Operation>>;
};
const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
const requestsOf = (id: string): unknown[] => {
  const body = operations.find(({ operationId }) => operationId === id)?.requestBody;
  const [media] = Object.values(body?.content ?? {});
  return Object.values(media?.examples ?? {}).map(({ value }) => value);
};

const FEW = 3;
const signer = newSigner();
const shared = sharedSystem();
const open = new Api(shared.url);
let second: SecondApi;
let api: Api;

/** As this user, by an access token. */
const as = (sub: string, more: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${signer.mint({ claims: { sub } })}`, ...more },
});
const ME = "reader";

beforeAll(async () => {
  second = await startSecondApi(shared, {
    ...OPEN_PROGRAM_LIMITS,
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
    PTC_RESUME_MAX_REQUESTS: "1000",
    FETCH_MAX_REQUESTS: "40",
    MAX_FILE_SIZE: "10000",
    UPLOAD_MAX_FILES: String(FEW),
    PTC_MAX_RESULT_BYTES: "1000",
    PTC_MAX_HISTORY_BYTES: "1500",
    PTC_MAX_STATE_BYTES: "20000",
  });
  api = new Api(second.url);
});
afterAll(async () => {
  expect(await second?.stop()).toBe(0);
});

const succeeded = new Set<string>();
const provoked = new Set<string>();

const SOME_ID = "A".repeat(21);
const post = (path: string, body: unknown, headers: Record<string, string> = {}, user = ME) =>
  api.post(path, body, as(user, headers));
const exec = (change: object, headers: Record<string, string> = {}) =>
  post("/exec", { lang: "bash", code: "true", ...change }, headers);
const get = (path: string, headers: Record<string, string> = {}, user = ME) =>
  api.send("GET", path, as(user, headers));
const form = (parts: readonly FormPart[], path = "/upload") => api.form(path, parts, as(ME));

const TOOLS = [{ name: "ask" }];
const start = (code: string, headers: Record<string, string> = {}, user = ME) =>
  post("/exec/programmatic", { code, tools: TOOLS }, headers, user);
const paused = async (code = "print(await ask())", headers: Record<string, string> = {}) =>
  (await start(code, headers)).ok<ToolCallRequired>();
const resume = ({ continuation_token, tool_calls }: ToolCallRequired, result: unknown, user = ME) =>
  post(
    "/exec/programmatic",
    { continuation_token, tool_results: tool_calls.map(({ id }) => ({ call_id: id, result })) },
    {},
    user,
  );
const cancel = (request_id: string) => post("/exec/programmatic/cancel", { request_id });

const LABEL = "x-librechat-code-request-id";

describe("what is asked in order is answered as the document says", () => {
  const done = (id: string, answer: Answer, status = 200) => {
    expect(answer.status, answer.text.slice(0, 500)).toBe(status);
    succeeded.add(id);
    return answer;
  };
  const formOf = (example: Record<string, unknown>): FormPart[] =>
    Object.entries(example).flatMap(([field, value]): FormPart[] =>
      Array.isArray(value)
        ? value.map((content: string, at) => ({
            field,
            name: `data/points-${at}.csv`,
            content,
            type: "text/csv",
          }))
        : [{ field, content: String(value) }],
    );

  test("health and readiness", async () => {
    done("health", await open.send("GET", "/health"));
    done("ready", await open.send("GET", "/ready"));
    done("healthDetailed", await get("/health/detailed"));
  });

  test("languages, in both forms, and the document", async () => {
    done("listLanguages", await get("/languages"));
    done("listLanguages", await get("/languages?format=text"));
    done("openapi", await get("/openapi.json"));
  });

  test.each(requestsOf("exec"))("exec: %j", async (body) => {
    const answer = done(
      "exec",
      await post("/exec", body, { "idempotency-key": JSON.stringify(body).slice(0, 99) }),
    );
    expect(answer.json()).toMatchObject({ code: 0, status: null });
  });

  test("exec: a file that is made, one that is left out, a deleted input, a limit that was met", async () => {
    const [stored] = (await form([{ name: "in.txt", content: "x" }])).ok<{ files: UploadedFile[] }>().files;
    const { id, storage_session_id, name } = stored as UploadedFile;
    const code = 'rm in.txt; echo 1 > new.csv; ln -s new.csv link; printf "%0.s-" $(seq 70000)';
    const answer = done("exec", await exec({ code, files: [{ id, storage_session_id, name }], unknown: 1 }));
    expect(answer.headers.get("x-svc-ignored-fields")).toBe("unknown");
    expect(answer.json()).toMatchObject({ status: "OL", deleted_files: ["in.txt"], files_omitted_count: 1 });
  });

  test("a job: made, asked for, its events, listed, removed", async () => {
    const made = done("exec", await exec({ code: "echo 1" }, { prefer: "respond-async" }), 202);
    const { job_id } = made.json<{ job_id: string }>();
    done("jobEvents", await get(`/jobs/${job_id}/events`));
    done("getJob", await get(`/jobs/${job_id}?wait_ms=30000`));
    done("listJobs", await get("/jobs"));
    done("deleteJob", await api.send("DELETE", `/jobs/${job_id}`, as(ME)), 204);
  });

  test("exec again with its key", async () => {
    const send = () => exec({ code: "echo once" }, { "idempotency-key": "document-1" });
    const [first, again] = [await send(), await send()];
    expect([first.headers.get("idempotency-replayed"), again.headers.get("idempotency-replayed")]).toEqual([
      null,
      "true",
    ]);
    expect(again.text).toBe(first.text);
  });

  test("a program with tools: start, resume, cancel", async () => {
    const [begin, go] = requestsOf("execProgrammatic") as [object, { tool_results: object[] }];
    const pause = done("execProgrammatic", await post("/exec/programmatic", begin)).json<ToolCallRequired>();
    expect(pause.limits).toEqual({ run_timeout_ms: 60_000, memory_bytes: 512 << 20 });
    const { continuation_token } = pause;
    const ended = done("execProgrammatic", await post("/exec/programmatic", { ...go, continuation_token }));
    expect(ended.json()).toMatchObject({ status: "completed", stdout: "{'celsius': 4}\n" });
    const failed = done("execProgrammatic", await start("raise SystemExit(3)"));
    expect(failed.json()).toMatchObject({ status: "error", error_type: "nonzero_exit" });
    for (const body of requestsOf("cancelProgrammatic")) {
      done("cancelProgrammatic", await post("/exec/programmatic/cancel", body));
    }
  });

  test.each(requestsOf("upload"))("files: upload %j, then list, look, read and delete", async (example) => {
    const parts = formOf(example as Record<string, unknown>);
    done("uploadBatch", await form([...parts, { name: "../climbs", content: "" }], "/upload/batch"));
    const { files } = done("upload", await form(parts)).json<{ files: UploadedFile[] }>();
    const [file] = files as [UploadedFile];
    const { kind, id, version } = example as Record<string, string>;
    const query = kind === undefined ? "" : `?kind=${kind}&id=${id}&version=${version}`;
    const also = query === "" ? "?" : `${query}&`;
    for (const detail of ["simple", "summary", "full", "normalized"]) {
      done("listFiles", await get(`/files/${file.storage_session_id}${also}detail=${detail}`));
    }
    done("usage", await get("/usage"));
    done("fileMetadata", await get(`/sessions/${file.storage_session_id}/objects/${file.id}${query}`));
    const path = `${downloadPath(file)}${query}`;
    const whole = done("download", await get(path));
    done("download", await get(path, { range: "bytes=0-2" }), 206);
    done("download", await get(path, { "if-none-match": whole.headers.get("etag") ?? "" }), 304);
    expect((await api.send("HEAD", path, as(ME))).status).toBe(200);
    done(
      "deleteFile",
      await api.send("DELETE", `/files/${file.storage_session_id}/${file.id}${query}`, as(ME)),
    );
  });

  /** Routes of a service that keeps sessions, and the file that calls them. */
  const OF_SESSIONS = ["deleteSession", "listSessionFiles", "listSessions", "sessionFile"];
  const SESSIONS_TEST = new URL("./sessions.test.ts", import.meta.url);

  test("every operation has succeeded, here or in the test of sessions", () => {
    const all = operations.map(({ operationId }) => operationId).toSorted();
    expect([...succeeded, ...OF_SESSIONS].toSorted()).toEqual(all);
    const text = readFileSync(SESSIONS_TEST, "utf8");
    for (const call of ['"GET", "/sessions"', "/files`", "/file?name=", '"DELETE", `/sessions/'])
      expect(text).toContain(call);
  });
});

describe("what is refused has a code that the document names", () => {
  const ref = { id: SOME_ID, storage_session_id: SOME_ID, name: "a.txt" };
  const stored = async () => {
    const { files } = (await form([{ name: "a.txt", content: "abc" }])).ok<{ files: UploadedFile[] }>();
    return downloadPath(files[0] as UploadedFile);
  };
  const label = (of: string) => ({ [LABEL]: `document-${of}` });

  test.each<[code: string, status: number, () => Promise<Answer>]>([
    ["unauthorized", 401, () => api.post("/exec", {})],
    [
      "origin_not_allowed",
      403,
      () => open.send("GET", "/health", { headers: { origin: "http://evil.example" } }),
    ],
    [
      "execution_profile_mismatch",
      422,
      () => get("/languages", { "x-codeapi-expected-profile": "stateful" }),
    ],
    ["stateful_workspace_unsupported", 422, () => exec({ workspace_instance_id: "w" })],
    ["stateful_workspace_unsupported", 422, () => exec({}, { "x-librechat-code-workspace-id": "w" })],
    [
      "invalid_json",
      400,
      () => api.send("POST", "/exec", { ...as(ME, { "content-type": "application/json" }), body: "{" }),
    ],
    [
      "invalid_content_type",
      400,
      () => api.send("POST", "/exec", { ...as(ME, { "content-type": "text/plain" }), body: "{}" }),
    ],
    ["invalid_request", 400, () => exec({ code: 1 })],
    ["unsupported_language", 400, () => exec({ lang: "pyhton" })],
    ["unsupported_version", 400, () => exec({ version: "99" })],
    ["invalid_file_reference", 400, () => exec({ files: [{ name: "a" }] })],
    ["too_many_files", 400, () => exec({ files: Array(257).fill(ref) })],
    ["file_reference_denied", 403, () => exec({ files: [ref] })],
    ["request_too_large", 422, () => exec({ code: "#".repeat(9 << 20) })],
    [
      "idempotency_key_reused",
      422,
      async () => {
        await exec({ code: "true" }, { "idempotency-key": "document-2" });
        return exec({ code: "false" }, { "idempotency-key": "document-2" });
      },
    ],
    ["invalid_id", 400, () => get(`/files/short`)],
    ["invalid_request", 400, () => get(`/files/${SOME_ID}?detail=all`)],
    ["file_not_found", 404, () => get(`/files/${SOME_ID}`)],
    ["not_found", 404, () => get("/sessions")],
    ["job_not_found", 404, () => get(`/jobs/${SOME_ID}`)],
    ["range_not_satisfiable", 416, async () => get(await stored(), { range: "bytes=10-" })],
    ["no_files", 400, () => form([{ field: "kind", content: "user" }])],
    [
      "invalid_multipart",
      400,
      () =>
        api.send("POST", "/upload", {
          ...as(ME, { "content-type": "multipart/form-data; boundary=b" }),
          body: "--b",
        }),
    ],
    [
      "too_many_files",
      400,
      () => form(Array.from({ length: FEW + 1 }, (_, at) => ({ name: `${at}`, content: "" }))),
    ],
    ["invalid_file_name", 400, () => form([{ name: "../x", content: "" }])],
    ["file_too_large", 413, () => form([{ name: "x", content: "x".repeat(10_001) }])],
    ["upload_failed", 400, () => form([{ name: "../x", content: "" }], "/upload/batch")],
    ["upload_failed", 413, () => form([{ name: "x", content: "x".repeat(10_001) }], "/upload/batch")],
    [
      "invalid_continuation_token",
      400,
      () => resume({ continuation_token: "x", tool_calls: [{ id: "call_001" }] } as ToolCallRequired, 1),
    ],
    [
      "invalid_tool_results",
      400,
      async () => post("/exec/programmatic", { ...(await paused()), tool_results: [] }),
    ],
    ["forbidden", 403, async () => resume(await paused(), 1, "somebody-else")],
    ["tool_result_too_large", 422, async () => resume(await paused(), "x".repeat(1001))],
    [
      "tool_history_too_large",
      422,
      async () => resume(await paused("print(await asyncio.gather(ask(), ask()))"), "x".repeat(900)),
    ],
    ["state_too_large", 422, () => start(`await ask()  # ${"x".repeat(30_000)}`)],
    [
      "continuation_conflict",
      409,
      async () => {
        const pause = await paused();
        await resume(pause, 1);
        return resume(pause, 2);
      },
    ],
    [
      "execution_expired",
      400,
      async () => {
        const pause = await paused(undefined, label("expired"));
        await cancel("document-expired");
        return resume(pause, 1);
      },
    ],
    [
      "execution_cancelled",
      409,
      async () => {
        const waiting = start("import time; time.sleep(50)", label("cancelled"));
        await until(
          async () => (await cancel("document-cancelled")).json<{ cancelled: number }>().cancelled > 0,
          30_000,
        );
        return waiting;
      },
    ],
    [
      "rate_limited",
      429,
      async () => {
        let answer = await get("/languages", {}, "greedy");
        for (let sent = 1; answer.status === 200 && sent <= 41; sent++)
          answer = await get("/languages", {}, "greedy");
        return answer;
      },
    ],
  ])("%s, %i", async (code, status, provoke) => {
    const answer = await provoke();
    expect([answer.status, answer.refusal.error]).toEqual([status, code]);
    expect(answer.refusal.request_id).toBe(answer.headers.get("x-request-id"));
    expect(answer.bytes.length).toBeLessThan(16 * 1024);
    provoked.add(code);
  });

  /** Codes of faults, and of moments that cannot be waited for here. */
  const ELSEWHERE: Readonly<Record<string, string>> = {
    execution_timeout: "services/worker/test/unit/round/public-error.test.ts",
    input_unavailable: "tests/e2e/inputs.test.ts",
    internal_error: "services/worker/test/live/runner-answers.test.ts",
    permission_denied: "services/runner/test/live/faults.test.ts",
    queue_saturated: "tests/e2e/departures.test.ts",
    quota_exceeded: "tests/e2e/quotas.test.ts",
    reserved_file_name: "tests/e2e/sessions.test.ts",
    sandbox_execution_failed: "services/worker/test/live/runner-answers.test.ts",
    sandbox_setup_failed: "tests/e2e/jail-faults.test.ts",
    shutting_down: "services/api/test/live/shutdown.test.ts",
    starting_up: "packages/service-kit/test/unit/http-routes.test.ts",
    storage_unavailable: "services/api/test/live/files/faults.test.ts",
    store_unavailable: "services/api/test/live/limits/routes.test.ts",
    upload_timeout: "services/api/test/live/files/faults.test.ts",
  };

  test("every code of the document is provoked here or there", () => {
    const named = new Set(
      operations.flatMap(({ responses }) =>
        Object.entries(responses)
          .filter(([status]) => Number(status) >= 400)
          .flatMap(([, { content = {} }]) =>
            Object.values(content).flatMap(({ examples = {} }) => Object.keys(examples)),
          ),
      ),
    );
    // The example of a status that is no error body.
    named.delete("not_ready");
    expect([...named].toSorted()).toEqual([...provoked, ...Object.keys(ELSEWHERE)].toSorted());
    for (const [code, file] of Object.entries(ELSEWHERE)) {
      expect(readFileSync(new URL(`../../${file}`, import.meta.url), "utf8"), file).toContain(code);
    }
  });
});

test("a page shows the document to people, and loads nothing", async () => {
  const page = await fetch(new URL("/docs", second.url));
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const text = await page.text();
  for (const { operationId } of operations) expect(text).toContain(`<section id="${operationId}">`);
  expect(text).not.toMatch(/<script|\bsrc=|https?:\/\/(?!localhost)/i);
  expect(page.headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-/);
  expect(await (await fetch(new URL("/", second.url))).text()).toBe(text);
});
