/**
 * From the id in an error body to the cause with one command: each code that a client can meet is met, and `./svc logs --request ID` shows
 * a line with it. Of what is the operator's to mend, a line says what was caught.
 */

import { rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { ERRORS, type ErrorCode } from "@svc/contracts";
import { ADVICE } from "@svc/contracts/error-advice";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { killProcess } from "@svc/test-kit/jail/host";
import { slow } from "@svc/test-kit/jail/slowness";
import { Api, type ErrorBody, type SendOptions } from "@svc/test-kit/system/api";
import { IN_GUESTS, RUNNER } from "@svc/test-kit/system/guests";
import { ONE_BY_ONE } from "@svc/test-kit/system/one-by-one";
import { OPEN_PROGRAM_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { declare, resultsOf, startPaused, tryResume, tryStart } from "@svc/test-kit/system/programmatic";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";
import { withoutJails, withoutRedis, withoutStorage } from "./support/faults.ts";
import { openStore } from "./support/store.ts";
import { svc } from "./support/svc.ts";

const SOON_MS = slow(30_000);
const MET_MS = 90_000;
/** More than the time in which the API still serves requests on connections that it had accepted. */
const LATE_MS = 2500;
const WARN = 40;
const SETTINGS = {
  ...OPEN_PROGRAM_LIMITS,
  ...ONE_BY_ONE,
  PYTHON_CONCURRENCY: "1",
  JOB_QUEUE_WAIT_MS: "3000",
  MAX_FILE_SIZE: "100kb",
  SVC_QUOTA_MAX_BYTES: "150kb",
  PTC_MAX_RESULT_BYTES: "20kb",
  PTC_MAX_HISTORY_BYTES: "30kb",
  PTC_MAX_STATE_BYTES: "100kb",
  JOB_TIMEOUT: "5000",
  SANDBOX_RUN_TIMEOUT: "5000",
  SANDBOX_COMPILE_TIMEOUT: "1000",
  JOB_PRIME_ALLOWANCE_MS: "20000",
  JOB_POSTPROCESS_ALLOWANCE_MS: "2000",
  JOB_WAIT_GRACE_MS: "1000",
};

const signer = newSigner();
let system: System;
let api: Api;
let withTokens: SecondApi;
/** With few requests, and little time for a body. */
let strict: SecondApi;

beforeAll(async () => {
  system = await startSystem({ env: SETTINGS });
  api = new Api(system.url);
  const tokens = { LOCAL_MODE: "false", SVC_JWT_PUBLIC_KEY: signer.pem, SVC_JWT_KID: KID };
  [withTokens, strict] = await Promise.all([
    startSecondApi(system, { ...SETTINGS, ...tokens }),
    startSecondApi(system, { ...SETTINGS, MAX_REQUESTS: "1", BODY_TIMEOUT_MS: "1000" }),
  ]);
});
afterAll(async () => {
  expect(await Promise.all([withTokens?.stop(), strict?.stop()])).toEqual([0, 0]);
  expect(await system?.stop()).toEqual([]);
});

const as = (sub: string): Omit<SendOptions, "body"> => ({
  headers: { authorization: `Bearer ${signer.mint({ claims: { sub } })}` },
});
const hello = { lang: "bash", code: "echo hello" };
const exec = async (input: object, options: Omit<SendOptions, "body"> = {}) =>
  (await api.post("/exec", { ...hello, ...input }, options)).refusal;
const sent = async (method: string, path: string, options: SendOptions = {}) =>
  (await api.send(method, path, options)).refusal;
const upload = async (name: string, content = "a", path = "/upload") =>
  (await api.form(path, [{ name, content }])).refusal;

const ID = "a".repeat(21);
const TOOLS = { get: ({ of }: { of: number }) => of };
const program = {
  code: "for n in range(5): print(len(str(await get(of=n))))",
  language: "python",
  tools: declare(["get"]),
};
const resumed = async (results: (call: { id: string }) => unknown, from = api) => {
  const paused = await startPaused(from, program);
  const [call] = paused.tool_calls;
  return (await tryResume(from, paused.continuation_token, results(call as { id: string }))).refusal;
};

/** Sends one piece of a request after the other on one connection, and answers the body of what comes. */
async function pieces(
  address: string,
  parts: readonly (string | (() => Promise<unknown>))[],
): Promise<ErrorBody> {
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  const answer = text(socket);
  for (const part of parts) {
    if (typeof part === "string") socket.write(part);
    else await part();
  }
  const whole = await answer;
  return JSON.parse(whole.slice(whole.indexOf("\r\n\r\n") + 4)) as ErrorBody;
}

/** A program that has begun. */
async function running(lang: string, code: string, options: Omit<SendOptions, "body"> = {}) {
  const marker = newMarker();
  const answer = api.tryExec({ lang, code, args: [marker] }, options);
  answer.catch(() => undefined);
  await until(() => processesWith(marker).length > 0, SOON_MS);
  return { answer, marker };
}

/** Sends it until it is refused with the code. */
async function untilMet(code: ErrorCode, send: () => Promise<ErrorBody>): Promise<ErrorBody> {
  let body: ErrorBody | undefined;
  await until(
    async () => {
      body = await send();
      return body.error === code;
    },
    MET_MS,
    () => body,
  );
  return body as ErrorBody;
}

const CALLER: Partial<Record<ErrorCode, () => Promise<ErrorBody>>> = {
  invalid_json: () => sent("POST", "/exec", { headers: { "content-type": "application/json" }, body: "{" }),
  invalid_request: () => exec({ code: 1 }),
  invalid_content_type: () =>
    sent("POST", "/exec", { headers: { "content-type": "text/plain" }, body: "{}" }),
  unsupported_language: () => exec({ lang: "cobol" }),
  unsupported_version: () => exec({ version: "99" }),
  invalid_file_reference: () => exec({ files: [{ id: "x" }] }),
  file_reference_denied: () => exec({ files: [{ id: ID, storage_session_id: ID, name: "a" }] }),
  invalid_id: () => sent("GET", "/download/x/y"),
  invalid_file_name: () => upload("../b.txt"),
  no_files: async () => (await api.form("/upload", [{ field: "kind", content: "user" }])).refusal,
  too_many_files: () =>
    exec({
      files: Array.from({ length: 257 }, (_, at) => ({ id: ID, storage_session_id: ID, name: `${at}` })),
    }),
  invalid_multipart: () =>
    sent("POST", "/upload", { headers: { "content-type": "multipart/form-data; boundary=b" }, body: "none" }),
  file_too_large: () => upload("large.bin", "x".repeat(200_000)),
  request_too_large: () => exec({ code: "#".repeat(9 * 2 ** 20) }),
  quota_exceeded: async () => {
    const parts = ["a", "b"].map((name) => ({ name, content: "x".repeat(90_000) }));
    return (await api.form("/upload", parts)).refusal;
  },
  upload_timeout: () =>
    pieces(strict.url, [
      "POST /v1/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n",
    ]),
  upload_failed: () => upload("../b.txt", "b", "/upload/batch"),
  unauthorized: async () => (await new Api(withTokens.url).tryExec(hello)).refusal,
  forbidden: async () => {
    const secured = new Api(withTokens.url);
    const { continuation_token: token } = await startPaused(secured, program, as("alice"));
    return (await tryResume(secured, token, [{ call_id: "call_001", result: 1 }], as("bob"))).refusal;
  },
  rate_limited: () =>
    untilMet("rate_limited", async () => {
      const answer = await new Api(strict.url).tryExec(hello);
      return answer.json<ErrorBody>();
    }),
  not_found: () => sent("GET", "/nothing"),
  method_not_allowed: () => sent("DELETE", "/exec"),
  file_not_found: () => sent("GET", `/download/${ID}/${ID}`),
  job_not_found: () => sent("GET", `/jobs/${ID}`),
  range_not_satisfiable: async () => {
    const file = await api.stage("short.txt", "short");
    return (await api.download(file, { range: "bytes=100-" })).refusal;
  },
  execution_profile_mismatch: () => exec({}, { headers: { "x-codeapi-expected-profile": "stateful" } }),
  stateful_workspace_unsupported: () => exec({ workspace_instance_id: "w" }),
  idempotency_key_reused: async () => {
    const key = { headers: { "idempotency-key": newMarker() } };
    await api.exec(hello, key);
    return exec({ code: "echo other" }, key);
  },
  invalid_continuation_token: async () =>
    (await tryResume(api, "none", [{ call_id: "call_001", result: 1 }])).refusal,
  execution_expired: async () => {
    const label = { headers: { "x-librechat-code-request-id": newMarker() } };
    const paused = await startPaused(api, program, label);
    await api.post("/exec/programmatic/cancel", { request_id: label.headers["x-librechat-code-request-id"] });
    const results = resultsOf(paused.tool_calls, TOOLS);
    return (await tryResume(api, paused.continuation_token, results)).refusal;
  },
  invalid_tool_results: () => resumed(() => [{ call_id: "call_999", result: 1 }]),
  tool_result_too_large: () => resumed(({ id }) => [{ call_id: id, result: "x".repeat(25_000) }]),
  tool_history_too_large: async () => {
    let paused = await startPaused(api, program);
    for (;;) {
      const results = paused.tool_calls.map(({ id }) => ({ call_id: id, result: "x".repeat(15_000) }));
      const answer = await tryResume(api, paused.continuation_token, results);
      if (answer.status !== 200) return answer.refusal;
      paused = answer.json();
    }
  },
  state_too_large: async () => (await tryStart(api, { ...program, code: "#".repeat(200_000) })).refusal,
  continuation_conflict: async () => {
    const paused = await startPaused(api, program);
    const [call] = paused.tool_calls;
    await tryResume(api, paused.continuation_token, [{ call_id: call?.id, result: 1 }]);
    return (await tryResume(api, paused.continuation_token, [{ call_id: call?.id, result: 2 }])).refusal;
  },
  execution_cancelled: () =>
    untilMet("execution_cancelled", async () => {
      const label = newMarker();
      const marker = newMarker();
      const code = "import time\ntime.sleep(4)";
      const started = tryStart(
        api,
        { ...program, code, args: [marker] },
        { headers: { "x-librechat-code-request-id": label } },
      );
      await until(() => processesWith(marker).length > 0, SOON_MS);
      await api.post("/exec/programmatic/cancel", { request_id: label });
      return (await started).refusal;
    }),
  starting_up: async () => {
    // A worker says again and again which runtimes there are.
    const worker = system.pid("worker");
    process.kill(worker, "SIGSTOP");
    try {
      const store = openStore(system);
      await store.del("svc:runtimes");
      store.disconnect();
      const fresh = await startSecondApi(system, SETTINGS);
      const { refusal } = await new Api(fresh.url).send("GET", "/languages");
      await fresh.stop();
      return refusal;
    } finally {
      process.kill(worker, "SIGCONT");
    }
  },
  shutting_down: async () => {
    const ending = await startSecondApi(system, SETTINGS);
    const closed = () =>
      fetch(`${ending.url}/health`).then(
        () => false,
        () => true,
      );
    const begin = "GET /v1/languages HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    const finish = "Connection: close\r\n\r\n";
    const stopped = async () => {
      await sleep(LATE_MS);
      void ending.stop();
      await until(closed, SOON_MS);
    };
    // Requests that come at once after the stop are still served.
    const stops = stopped();
    const first = pieces(ending.url, [begin, () => stops, finish]);
    const second = pieces(ending.url, [begin, () => first, () => sleep(LATE_MS), finish]);
    return second;
  },
};

/** Between its end and its restart it has no process. */
function killRunner(): void {
  const runner = system.state().components.find(({ name }) => name === RUNNER)?.process;
  try {
    if (runner !== undefined) killProcess(runner.pid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

const OPERATOR: Partial<Record<ErrorCode, () => Promise<ErrorBody>>> = {
  origin_not_allowed: () => sent("GET", "/languages", { headers: { origin: "https://elsewhere.example" } }),
  input_unavailable: async () => {
    const file = await api.stage("gone.txt", "content");
    rmSync(join(system.instance.dataDir, "objects/sessions", file.storage_session_id, file.id));
    return exec({ files: [file] });
  },
  queue_saturated: () =>
    untilMet("queue_saturated", async () => {
      const { answer } = await running("py", "import time\ntime.sleep(5)");
      const refused = exec({ lang: "py", code: "print(1)" });
      await answer;
      return refused;
    }),
  storage_unavailable: () =>
    withoutStorage(system, () => untilMet("storage_unavailable", () => upload("a.txt"))),
  store_unavailable: () => withoutRedis(system, () => untilMet("store_unavailable", () => exec({}))),
  sandbox_setup_failed: () => withoutJails(system, () => untilMet("sandbox_setup_failed", () => exec({}))),
  sandbox_execution_failed: async () => {
    const { answer, marker } = await running("bash", 'python3 -c "import time; time.sleep(4)" $1');
    let isOver = false;
    const refused = answer.then(({ refusal }) => {
      isOver = true;
      return refusal;
    });
    while (!isOver) {
      if (processesWith(marker).length > 0) killRunner();
      await sleep(100);
    }
    return refused;
  },
  execution_timeout: async () => {
    const { answer } = await running("bash", 'python3 -c "import time; time.sleep(4)" $1');
    const runner = system.pid(RUNNER);
    process.kill(runner, "SIGSTOP");
    try {
      return (await answer).refusal;
    } finally {
      process.kill(runner, "SIGCONT");
    }
  },
};

/** Nothing was caught: no slot was free in time. */
const ITS_OWN_CAUSE: readonly string[] = ["queue_saturated"];

const NOT_MET: Partial<Record<ErrorCode, string>> = {
  permission_denied: "a right that jaild had at its start must be taken away while it runs",
  manifest_key_missing:
    "the runner does not start without the key; the caller would read sandbox_setup_failed",
  manifest_refused:
    "the caller reads sandbox_setup_failed, and the runner logs the reason: troubleshooting/programs.test.ts",
  reserved_file_name: "sessions are not kept here: sessions.test.ts",
  upstream_unavailable: "the caller reads sandbox_setup_failed",
  upstream_timeout: "the caller reads sandbox_setup_failed",
  internal_error: "no request is known that makes one",
};

test("each code that a client can read is met here, or stands in the list with the reason", () => {
  const readable = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ADVICE[code].who !== "component");
  expect(Object.keys({ ...CALLER, ...OPERATOR, ...NOT_MET }).sort()).toEqual(readable.sort());
});

interface Line {
  name: string;
  level: number;
  msg: string;
  [field: string]: unknown;
}

/** What the one command shows, once the line of the request is there. */
async function linesOf(id: string): Promise<Line[]> {
  let lines: Line[] = [];
  await until(async () => {
    const { stdout } = await svc(["logs", "--json", "--request", id], system.environment);
    lines = stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line);
    return lines.some(({ msg, request_id }) => msg === "request" && request_id === id);
  }, SOON_MS);
  return lines;
}

/** Meets the code. Answers what the logs have of that request; the API's line says the code. */
async function linesAfter(meet: () => Promise<ErrorBody>, code: string): Promise<Line[]> {
  const { error, request_id } = await meet();
  expect(error).toBe(code);
  const lines = await linesOf(request_id);
  expect(lines.find(({ msg, request_id: id }) => msg === "request" && id === request_id)).toMatchObject({
    name: "api",
    error: code,
  });
  return lines;
}

test.each(Object.entries(CALLER))("%s", async (code, meet) => {
  await linesAfter(meet, code);
});

/** A guest's jaild cannot be taken away from outside, and that its program has begun is seen seconds later. */
const NOT_IN_GUESTS: readonly string[] = IN_GUESTS
  ? ["sandbox_setup_failed", "queue_saturated", "sandbox_execution_failed"]
  : [];

test.each(Object.entries(OPERATOR).filter(([code]) => !NOT_IN_GUESTS.includes(code)))(
  "%s, and what was caught",
  async (code, meet) => {
    const lines = await linesAfter(meet, code);
    if (ERRORS[code as ErrorCode].status < 500) return;
    const causes = lines.filter(({ level }) => level >= WARN);
    const says = ({ err, code: own }: Line) =>
      err !== undefined || (own === code && ITS_OWN_CAUSE.includes(code));
    expect(causes.filter(says), JSON.stringify(lines)).not.toEqual([]);
  },
);
