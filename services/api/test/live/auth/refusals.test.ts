import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type IdentityApi, startIdentityApi } from "../../support/identity-api.ts";
import { mintHmac, newSigner, seconds } from "../../support/signer.ts";

let api: IdentityApi;
beforeAll(async () => {
  api = await startIdentityApi({ SVC_TENANT_ISOLATION_STRICT: "true" });
});
afterAll(() => api?.stop());

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
  ];
  const seen = new Set<string>();
  for (const [cause, lines] of tokens) {
    for (const [method, path] of ROUTES) {
      api.logged.length = 0;
      const answer = await send(method, path, [...lines, "x-api-key", "k", "user-id", "u"], "{");
      expect([cause, path, answer.status]).toEqual([cause, path, 401]);
      expect(answer.headers["www-authenticate"]).toBe("Bearer");
      seen.add(JSON.stringify(answer));
      expect(api.logged.join()).toContain(cause);
      expect(api.logged.join()).not.toContain(right.split(".")[2]);
    }
  }
  expect([...seen]).toHaveLength(1);
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
