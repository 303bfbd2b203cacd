/** docs/troubleshooting.md, "Callers are refused": each refusal is met, its cause is found by what the page names, and its advice helps. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { FileRef } from "@svc/contracts";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { slow } from "@svc/test-kit/jail/slowness";
import { type Answer, Api, deletePath, downloadPath, refTo } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { newMarker, until } from "@svc/test-kit/system/processes";
import { declare, driveOn, resultsOf, startPaused, tryResume } from "@svc/test-kit/system/programmatic";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, beforeAll, expect } from "vitest";
import { type Certificate, makeCertificate, startNginx } from "../support/proxies.ts";
import { openStore } from "../support/store.ts";
import { svc } from "../support/svc.ts";
import { expectSaid, provokeEachRow } from "../support/troubleshooting.ts";

const MIB = 2 ** 20;
const SOON_MS = slow(30_000);
const system = sharedSystem();
const api = new Api(system.url);
const signer = newSigner();
const replicas: SecondApi[] = [];
let keys: string;
let withKeys: Api;
let certificate: Certificate;

/** A further replica of the API with settings of its own. */
async function replica(env: Record<string, string>): Promise<Api> {
  const started = await startSecondApi(system, { ...OPEN_LIMITS, ...env });
  replicas.push(started);
  return new Api(started.url);
}

const token = (claims: Record<string, unknown> = {}) => ({
  headers: { authorization: `Bearer ${signer.mint({ claims })}` },
});
const hello = { lang: "bash", code: "echo hello" };
const refusal = ({ status, refusal: { error } }: Answer) => [status, error];
/** What the logs say of the request of an answer. */
const logOf = async (answer: Answer): Promise<string> => {
  const { stdout } = await svc(["logs", "--request", answer.refusal.request_id], system.environment);
  return stdout;
};

beforeAll(async () => {
  keys = mkdtempSync(join(tmpdir(), "svc-keys-"));
  writeFileSync(join(keys, `${KID}.pem`), signer.pem);
  withKeys = await replica({
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEYS_DIR: keys,
    SVC_JWT_KEY_CACHE_TTL_SECONDS: "1",
  });
  certificate = await makeCertificate(api, "code.example.com");
});
afterAll(async () => {
  for (const { stop } of replicas) expect(await stop()).toBe(0);
  rmSync(keys, { recursive: true });
});

/** GET with a Host that `fetch` would not send. */
function withHost(url: string, host: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers: { host }, agent: false }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    sent.once("error", reject).end();
  });
}

provokeEachRow("Callers are refused", {
  "`no JWT key is loaded; every token is refused` (log)": async () => {
    const status = async () => (await withKeys.post("/exec", hello, token())).status;
    const key = join(keys, `${KID}.pem`);
    rmSync(key);
    await expect.poll(status).toBe(401);
    const { stdout } = await svc(["logs", "api"], system.environment);
    expectSaid(stdout, "`no JWT key is loaded; every token is refused` (log)");
    writeFileSync(key, signer.pem);
    await expect.poll(status).toBe(200);
  },

  "401 `unauthorized`": async () => {
    const later = Math.floor(Date.now() / 1000) + 3600;
    for (const [change, reason] of [
      [{ claims: { iat: later, nbf: later, exp: later + 300 } }, /not valid yet/],
      [{ claims: { tenant_id: undefined } }, /tenant/],
      [{ header: { kid: "unknown" } }, /kid|key/],
    ] as const) {
      const authorization = `Bearer ${signer.mint(change)}`;
      const answer = await withKeys.post("/exec", hello, { headers: { authorization } });
      expect(refusal(answer)).toEqual([401, "unauthorized"]);
      expect(await logOf(answer)).toMatch(reason);
    }
    expect((await withKeys.post("/exec", hello, token())).status).toBe(200);
  },

  "401 at `/metrics`: `Metrics are closed here until SVC_METRICS_TOKEN is set.`": async () => {
    const closed = await replica({ TRUST_PROXY: "1", LOCAL_MODE: "false", SVC_JWT_PUBLIC_KEYS_DIR: keys });
    const answer = await closed.send("GET", "/metrics");
    expect(refusal(answer)).toEqual([401, "unauthorized"]);
    expectSaid(answer.refusal.message, "`Metrics are closed here until SVC_METRICS_TOKEN is set.`");
    const SVC_METRICS_TOKEN = newSecret();
    const open = await replica({
      TRUST_PROXY: "1",
      LOCAL_MODE: "false",
      SVC_JWT_PUBLIC_KEYS_DIR: keys,
      SVC_METRICS_TOKEN,
    });
    const headers = { authorization: `Bearer ${SVC_METRICS_TOKEN}` };
    expect((await open.send("GET", "/metrics", { headers })).text).toContain("svc_http_requests_total");
  },

  "403 `origin_not_allowed`": async () => {
    const path = "/files/any";
    const refused = await withHost(`${system.url}${path}`, "code.example.com");
    expect([refused.status, JSON.parse(refused.body).error]).toEqual([403, "origin_not_allowed"]);
    const page = await api.send("GET", path, { headers: { origin: "https://elsewhere.example" } });
    expect(refusal(page)).toEqual([403, "origin_not_allowed"]);
    const named = await replica({ SVC_ALLOWED_HOSTS: "code.example.com" });
    const allowed = await withHost(`${named.url}/languages`, "code.example.com");
    expect(allowed.status).toBe(200);
    expect((await withHost(`${withKeys.url}/languages`, "code.example.com")).status).toBe(401);
  },

  "429 `rate_limited`": async () => {
    const few = await replica({ MAX_REQUESTS: "1", RATE_LIMIT_WINDOW: "3000" });
    let refused = await few.tryExec(hello);
    const isRefused = async () => {
      refused = await few.tryExec(hello);
      return refused.status === 429;
    };
    await until(isRefused, SOON_MS);
    expect(refusal(refused)).toEqual([429, "rate_limited"]);
    await sleep(Number(refused.headers.get("retry-after")) * 1000);
    expect((await few.tryExec(hello)).status).toBe(200);
    const one = await replica({ SVC_MAX_CONCURRENT_EXECUTIONS: "1" });
    const sleeper = { lang: "bash", code: "sleep 1" };
    const areOneByOne = async () => {
      const both = await Promise.all([one.tryExec(sleeper), one.tryExec(sleeper)]);
      return (
        both
          .map(({ status }) => status)
          .sort()
          .join() === "200,429"
      );
    };
    await until(areOneByOne, SOON_MS);
    const more = await replica({ SVC_MAX_CONCURRENT_EXECUTIONS: "2" });
    const all = await Promise.all([more.tryExec(sleeper), more.tryExec(sleeper)]);
    expect(all.map(({ status }) => status)).toEqual([200, 200]);
  },

  "400 `unsupported_language`": async () => {
    const answer = await api.tryExec({ lang: "pyhton", code: "print(1)" });
    expect(refusal(answer)).toEqual([400, "unsupported_language"]);
    expect(answer.refusal.message).toMatch(/python/);
    expect((await api.exec({ lang: "python", code: "print(1)" })).stdout).toBe("1\n");
    // With more languages: ./svc test --compat.
    const { stderr } = await svc(["up", "--languages", "go"], system.environment);
    expect(stderr).toContain("./svc down, then the same command again");
  },

  "413 `file_too_large`, 422 `request_too_large`": async () => {
    const small = await replica({ MAX_FILE_SIZE: "1kb" });
    const content = "x".repeat(2000);
    const parts = [{ name: "large.txt", content }];
    expect(refusal(await small.form("/upload", parts))).toEqual([413, "file_too_large"]);
    const larger = await replica({ MAX_FILE_SIZE: "2kb" });
    expect((await larger.form("/upload", parts)).status).toBe(200);
    const lines = `${"#".repeat(100)}\n`.repeat((9 * MIB) / 101);
    const code = `${lines}print(6*7)`;
    expect(refusal(await api.tryExec({ lang: "py", code }))).toEqual([422, "request_too_large"]);
    const main = await api.stage("program.py", code);
    const read = { lang: "py", code: "exec(open('program.py').read())", files: [main] };
    expect((await api.exec(read)).stdout).toBe("42\n");
  },

  "413 with an HTML page": async () => {
    const parts = [{ name: "large.txt", content: "x".repeat(100_000) }];
    const bound = { "client_max_body_size 0;": "client_max_body_size 10k;" };
    const strict = await startNginx(system.instance.ports.api, certificate, bound);
    try {
      const answer = await new Api(strict.url, { isProxied: true }).form("/upload", parts);
      expect([answer.status, answer.headers.get("content-type")]).toEqual([413, "text/html"]);
    } finally {
      await strict.stop();
    }
    const ours = await startNginx(system.instance.ports.api, certificate);
    try {
      expect((await new Api(ours.url).form("/upload", parts)).status).toBe(200);
    } finally {
      await ours.stop();
    }
  },

  "502, 504 with an HTML page": async () => {
    const slow = { lang: "bash", code: "sleep 2; echo whole" };
    const bound = { "proxy_read_timeout 660s;": "proxy_read_timeout 1s;" };
    const impatient = await startNginx(system.instance.ports.api, certificate, bound);
    try {
      const late = await new Api(impatient.url, { isProxied: true }).tryExec(slow);
      expect([late.status, late.headers.get("content-type")]).toEqual([504, "text/html"]);
    } finally {
      await impatient.stop();
    }
    const away = await startSecondApi(system, OPEN_LIMITS);
    const proxy = await startNginx(Number(new URL(away.url).port), certificate);
    try {
      expect((await new Api(proxy.url, { isProxied: true }).tryExec(slow)).ok()).toMatchObject({
        stdout: "whole\n",
      });
      await away.stop();
      const gone = await new Api(proxy.url, { isProxied: true }).tryExec(slow);
      expect([gone.status, gone.headers.get("content-type")]).toEqual([502, "text/html"]);
    } finally {
      await proxy.stop();
    }
  },

  "404 `file_not_found`": async () => {
    const [file] = await withFiles(token());
    if (file === undefined) throw new Error("nothing was stored");
    const of = (claims: Record<string, unknown>) => withKeys.send("GET", downloadPath(file), token(claims));
    expect(refusal(await of({ sub: "somebody-else" }))).toEqual([404, "file_not_found"]);
    expect((await of({})).text).toBe("content");
    await withKeys.send("DELETE", deletePath(file), token());
    expect(refusal(await of({}))).toEqual([404, "file_not_found"]);
    const [again] = await withFiles(token());
    expect((await withKeys.send("GET", downloadPath(again as FileRef), token())).text).toBe("content");
  },

  "403 `file_reference_denied`": async () => {
    const [file] = await withFiles(token());
    const files = [refTo({ ...(file as FileRef), name: "file.txt" })];
    const read = (claims: Record<string, unknown>) =>
      withKeys.post("/exec", { lang: "bash", code: "cat file.txt", files }, token(claims));
    expect(refusal(await read({ sub: "somebody-else" }))).toEqual([403, "file_reference_denied"]);
    expect((await read({})).ok()).toMatchObject({ stdout: "content" });
  },

  "400 `execution_expired`": async () => {
    const id = newMarker();
    const paused = await startPaused(api, program, { headers: { "x-request-id": id } });
    // Redis lost it.
    const { stdout } = await svc(["logs", "--request", id], system.environment);
    const [, execution = ""] = /exec_id=(\S+)/.exec(stdout) ?? [];
    const store = openStore(system);
    try {
      expect(await store.del(`svc:ptc:${execution}`)).toBe(1);
    } finally {
      store.disconnect();
    }
    const results = resultsOf(paused.tool_calls, TOOLS);
    expect(refusal(await tryResume(api, paused.continuation_token, results))).toEqual([
      400,
      "execution_expired",
    ]);
    expect((await driveOn(api, await startPaused(api, program), TOOLS)).answer.stdout).toBe("4\n");
  },

  "400 `invalid_continuation_token`": async () => {
    const paused = await startPaused(api, program);
    const results = resultsOf(paused.tool_calls, TOOLS);
    const changed = `${paused.continuation_token.slice(0, -4)}AAAA`;
    expect(refusal(await tryResume(api, changed, results))).toEqual([400, "invalid_continuation_token"]);
    const otherSecret = await replica({ SVC_CONTINUATION_SECRET: newSecret() });
    const elsewhere = await tryResume(otherSecret, paused.continuation_token, results);
    expect(refusal(elsewhere)).toEqual([400, "invalid_continuation_token"]);
    expect((await driveOn(otherSecret, await startPaused(otherSecret, program), TOOLS)).answer.stdout).toBe(
      "4\n",
    );
  },

  "404 `not_found`: `Persistent sessions are off here.`": async () => {
    const answer = await api.send("GET", "/sessions");
    expect(refusal(answer)).toEqual([404, "not_found"]);
    expect(answer.refusal.message).toContain("Persistent sessions are off here.");
    const kept = await replica({ SVC_PERSIST_SESSIONS: "true" });
    expect((await kept.send("GET", "/sessions")).ok()).toEqual({ sessions: [] });
  },

  "`session_state_restore_failed: true` in answers": async () => {
    // The API keeps sessions, and the worker behind it does not.
    const kept = await replica({ SVC_PERSIST_SESSIONS: "true" });
    expect(await kept.exec({ ...hello, runtime_session_hint: "skew" })).toMatchObject({
      stdout: "hello\n",
      session_state_persisted: false,
      session_state_restore_failed: true,
    });
    expect(await api.exec({ ...hello, runtime_session_hint: "skew" })).not.toHaveProperty(
      "session_state_restore_failed",
    );
  },
});

const TOOLS = { twice: ({ of }: { of: number }) => of * 2 };
const program = { code: "print(await twice(of=2))", language: "python", tools: declare(["twice"]) };

async function withFiles(options: { headers: Record<string, string> }): Promise<FileRef[]> {
  const answer = await withKeys.form("/upload", [{ name: "file.txt", content: "content" }], options);
  return answer.ok<{ files: FileRef[] }>().files;
}
