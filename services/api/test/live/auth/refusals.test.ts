import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { apiKeyRecord, apiKeysFile, newApiKey } from "@svc/test-kit/credentials/api-keys";
import { mintHmac, newSigner, seconds } from "@svc/test-kit/credentials/signer";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type IdentityApi, startIdentityApi } from "../../support/identity-api.ts";

let api: IdentityApi;
const [key, ended, revoked] = [newApiKey(), newApiKey(), newApiKey()];
const keysFile = apiKeysFile();
const RECORDS = [
  apiKeyRecord(key, { user: "keyed", plan: "pro" }),
  apiKeyRecord(ended, { expires_at: "2026-01-01T00:00:00Z" }),
  apiKeyRecord(revoked, { revoked_at: "2026-01-01T00:00:00Z" }),
];
beforeAll(async () => {
  keysFile.put(RECORDS);
  api = await startIdentityApi({ SVC_API_KEYS_FILE: keysFile.path });
});
afterAll(async () => {
  await api?.stop();
  keysFile.remove();
});

const ROUTES = [
  ["POST", "/v1/exec"],
  ["POST", "/v1/upload"],
  ["POST", "/v1/upload/batch"],
  ["GET", `/v1/download/${"a".repeat(21)}/${"b".repeat(21)}`],
  ["GET", `/v1/sessions/${"a".repeat(21)}/objects/${"b".repeat(21)}`],
  ["GET", `/v1/files/${"a".repeat(21)}`],
  ["DELETE", `/v1/files/${"a".repeat(21)}/${"b".repeat(21)}`],
] as const;

interface Answer {
  status: number | undefined;
  headers: Record<string, unknown>;
  body: string;
}

/** Sends header lines exactly as they are, repeated ones too. */
function send(method: string, path: string, lines: readonly string[], body = ""): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = ["host", "test", "content-length", String(Buffer.byteLength(body)), ...lines];
    const call = request(`${api.url}${path}`, { method, headers }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => {
        text += chunk;
      });
      answer.on("end", () => {
        const { date, "x-request-id": id, connection, "keep-alive": _, ...shown } = answer.headers;
        resolve({ status: answer.statusCode, headers: shown, body: text.replaceAll(String(id), "<id>") });
      });
    });
    call.on("error", reject);
    call.end(body);
  });
}

test("every cause has the same answer on every route, and the log has the cause", async () => {
  const right = api.signer.mint();
  const old = seconds() - 1000;
  const tokens: [string, readonly string[]][] = [
    ["no Authorization header", []],
    ["no bearer token", ["authorization", `Basic ${right}`]],
    [
      "more than one Authorization header",
      ["authorization", `Bearer ${right}`, "Authorization", `Bearer ${right}`],
    ],
    ["a token that is too long", ["authorization", `Bearer ${"a".repeat(9000)}.b.c`]],
    ["bad signature", ["authorization", `Bearer ${newSigner().mint()}`]],
    ["an algorithm that does not fit the key", ["authorization", `Bearer ${mintHmac(api.signer.pem)}`]],
    ["unknown kid", ["authorization", `Bearer ${api.signer.mint({ header: { kid: "/etc/passwd" } })}`]],
    ["another audience", ["authorization", `Bearer ${api.signer.mint({ claims: { aud: "x" } })}`]],
    [
      "expired",
      ["authorization", `Bearer ${api.signer.mint({ claims: { iat: old, nbf: old, exp: old + 300 } })}`],
    ],
    ["no tenant", ["authorization", `Bearer ${api.signer.mint({ claims: { tenant_id: undefined } })}`]],
    ["unknown API key", ["authorization", `Bearer ${newApiKey()}`]],
    ["unknown API key", ["x-api-key", newApiKey()]],
    ["is expired", ["x-api-key", ended]],
    ["is revoked", ["authorization", `Bearer ${revoked}`]],
    ["no API key", ["x-api-key", "k"]],
    ["an API key that is too long", ["x-api-key", `svc_${"a".repeat(9000)}`]],
    ["an API key that is too long", ["authorization", `Bearer ${key}a`]],
    ["more than one X-API-Key header", ["x-api-key", key, "X-API-Key", key]],
    ["different credentials", ["authorization", `Bearer ${right}`, "x-api-key", key]],
  ];
  const seen = new Set<string>();
  for (const [cause, lines] of tokens) {
    for (const [method, path] of ROUTES) {
      api.logged.length = 0;
      const answer = await send(method, path, [...lines, "user-id", "u"], "{");
      expect([cause, path, answer.status]).toEqual([cause, path, 401]);
      expect(answer.headers["www-authenticate"]).toBe("Bearer");
      seen.add(JSON.stringify(answer));
      expect(api.logged.join()).toContain(cause);
      expect(api.logged.join()).not.toContain(right.split(".")[2]);
      for (const secret of [key, ended, revoked])
        expect(api.logged.join()).not.toContain(secret.slice(4, 30));
    }
  }
  expect([...seen]).toHaveLength(1);
  expect(seen.values().next().value).toContain(
    "Send a valid access token: Authorization: Bearer <token>, see docs/authentication.md",
  );
});

test("an API key is changed, revoked and added without a restart; a broken file changes nothing", async () => {
  const added = newApiKey();
  const run = async (headers: Record<string, string>) =>
    fetch(`${api.url}/v1/exec`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: '{"lang":"py","code":"1"}',
    });
  const status = async (shown: string) => (await run({ "x-api-key": shown })).status;
  api.ran.length = 0;
  expect((await run({ authorization: `Bearer ${key}`, "x-api-key": key })).status).toBe(200);
  expect(api.ran.map(({ principal }) => principal)).toEqual([{ tenantId: "t1", userId: "keyed" }]);
  keysFile.put([apiKeyRecord(key, { revoked_at: "2026-11-24T00:00:00Z" }), apiKeyRecord(added)]);
  await expect.poll(() => status(added)).toBe(200);
  expect(await status(key)).toBe(401);
  api.logged.length = 0;
  writeFileSync(keysFile.path, `${added}\n`, { mode: 0o600 });
  await expect
    .poll(() => api.logged.join())
    .toContain("reloading the API keys failed; the last ones stay in use");
  expect(api.logged.join()).not.toContain(added);
  expect([await status(added), await status(key)]).toEqual([200, 401]);
  keysFile.put(RECORDS);
  await expect.poll(() => status(key)).toBe(200);
  expect(await status(added)).toBe(401);
});

test("credentials are judged before the body, and after route and method", async () => {
  const right = ["authorization", `Bearer ${api.signer.mint()}`, "content-type", "application/json"];
  expect((await send("POST", "/v1/exec", right, "{")).status).toBe(400);
  expect((await send("POST", "/v1/nowhere", [], "{")).status).toBe(404);
  expect((await send("GET", "/v1/exec", [])).status).toBe(405);
});

test.each(["/v1/health", "/metrics", "/v1/metrics"])("%s stays open", async (path) => {
  expect((await send("GET", path, [])).status).toBe(200);
  expect((await send("GET", path, ["authorization", "Bearer nonsense"])).status).toBe(200);
});

test("readiness stays open", async () => {
  expect((await send("GET", "/v1/ready", [])).body).toContain('"checks"');
});

test("failures are counted by cause, however many, and nobody is locked out", async () => {
  const counted = async () => {
    const { body } = await send("GET", "/metrics", []);
    const lines = body.matchAll(/^svc_auth_failures_total\{reason="(\w+)"\} (\d+)$/gm);
    return Object.fromEntries([...lines].map(([, reason = "", count]) => [reason, Number(count)]));
  };
  const before = await counted();
  const bad: Record<string, string[]> = {
    missing: [],
    malformed: ["authorization", `Bearer ${"a".repeat(9000)}`],
    unknown_key: ["authorization", `Bearer ${api.signer.mint({ header: { kid: "other" } })}`],
    wrong_algorithm: ["authorization", `Bearer ${mintHmac(api.signer.pem)}`],
    bad_signature: ["authorization", `Bearer ${newSigner().mint()}`],
    bad_claims: ["authorization", `Bearer ${api.signer.mint({ claims: { iss: "x" } })}`],
    expired: ["authorization", `Bearer ${api.signer.mint({ claims: { iat: 1, nbf: 1, exp: 300 } })}`],
    no_tenant: ["authorization", `Bearer ${api.signer.mint({ claims: { tenant_id: undefined } })}`],
    unknown_api_key: ["x-api-key", newApiKey()],
    revoked: ["x-api-key", revoked],
    two_credentials: ["authorization", `Bearer ${newApiKey()}`, "x-api-key", key],
  };
  const times = 20;
  for (const lines of Object.values(bad)) {
    await Promise.all(Array.from({ length: times }, () => send("GET", `/v1/files/${"a".repeat(21)}`, lines)));
  }
  const after = await counted();
  expect(Object.keys(after).sort()).toEqual(Object.keys(bad).sort());
  for (const reason of Object.keys(bad)) {
    expect([reason, (after[reason] ?? 0) - (before[reason] ?? 0)]).toEqual([reason, times]);
  }
  const right = ["authorization", `Bearer ${api.signer.mint()}`];
  expect((await send("GET", `/v1/files/${"a".repeat(21)}`, right)).status).toBe(404);
});

test.each([
  [{ SERVICE_HOST: "0.0.0.0" }, 401],
  [{ TRUST_PROXY: "1" }, 401],
  [{ SERVICE_HOST: "127.0.0.1" }, 200],
])("metrics without SVC_METRICS_TOKEN, with %j: %i", async (env, status) => {
  const other = await startIdentityApi(env as Record<string, string>);
  for (const path of ["/metrics", "/v1/metrics"])
    expect((await fetch(`${other.url}${path}`)).status).toBe(status);
  expect((await fetch(`${other.url}/v1/health`)).status).toBe(200);
  await other.stop();
});

test("a token without a tenant is of the one that SVC_JWT_SINGLE_TENANT_ID names", async () => {
  const other = await startIdentityApi({ SVC_JWT_SINGLE_TENANT_ID: "main" });
  const run = async (claims: Record<string, unknown>) =>
    fetch(`${other.url}/v1/exec`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${other.signer.mint({ claims })}`,
      },
      body: '{"lang":"py","code":"1"}',
    });
  expect((await run({ tenant_id: undefined, sub: "alice" })).status).toBe(200);
  expect((await run({ tenant_id: "t2", sub: "alice" })).status).toBe(200);
  expect(other.ran.map(({ principal }) => principal)).toEqual([
    { tenantId: "main", userId: "alice" },
    { tenantId: "t2", userId: "alice" },
  ]);
  await other.stop();
});
