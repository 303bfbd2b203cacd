import { INTERNAL_TOKEN_HEADER, ServiceError } from "@svc/contracts";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { afterEach, describe, expect, it } from "vitest";
import {
  createRegistry,
  equalSecrets,
  type HttpServer,
  httpMetrics,
  metricsRoutes,
  requireInternalToken,
} from "../../src/index.ts";
import { type TestApp, testApp } from "../support/app.ts";

const TOKEN = newSecret();
const apps: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

function server(options?: Parameters<typeof testApp>[0]): TestApp {
  const made = testApp(options);
  apps.push(made.app);
  return made;
}

describe("the internal token", () => {
  function guarded(...tokens: string[]) {
    const made = server({ bodyLimit: 10 });
    made.app.post("/inner", { onRequest: requireInternalToken(tokens) }, async () => ({ ok: true }));
    return made;
  }
  const call = (app: HttpServer, given: string | string[] | undefined, payload: object = {}) =>
    app.inject({
      method: "POST",
      url: "/inner",
      headers: given === undefined ? {} : { [INTERNAL_TOKEN_HEADER]: given },
      payload,
    });

  it("opens the route", async () => {
    expect((await call(guarded(TOKEN).app, TOKEN)).json()).toEqual({ ok: true });
  });

  it.each([
    undefined,
    "",
    TOKEN.slice(1),
    `${TOKEN}x`,
    TOKEN.toUpperCase(),
    `Bearer ${TOKEN}`,
    `${TOKEN}, ${TOKEN}`,
    "undefined",
  ])("%j does not, and the answer does not say why", async (given) => {
    const answer = await call(guarded(TOKEN).app, given);
    expect(answer.statusCode).toBe(401);
    expect(answer.json()).toEqual({
      error: "unauthorized",
      message: "Valid credentials are required.",
      request_id: answer.headers["x-request-id"],
    });
  });

  it("may be one of several, and none of none", async () => {
    const other = newSecret();
    for (const token of [TOKEN, other])
      expect((await call(guarded(other, TOKEN).app, token)).statusCode).toBe(200);
    expect((await call(guarded(other, TOKEN).app, `${other}, ${TOKEN}`)).statusCode).toBe(401);
    expect((await call(guarded().app, TOKEN)).statusCode).toBe(401);
  });

  it("an empty configured token opens nothing, not even for an empty one", async () => {
    expect((await call(guarded("").app, "")).statusCode).toBe(401);
    expect((await call(guarded("").app, undefined)).statusCode).toBe(401);
  });

  it("is checked before the body is read", async () => {
    const answer = await call(guarded(TOKEN).app, "wrong", { long: "x".repeat(100) });
    expect(answer.statusCode).toBe(401);
  });

  it("never stands in the log", async () => {
    const { app, logged } = guarded(TOKEN);
    await call(app, `${TOKEN}-wrong`);
    await call(app, TOKEN);
    expect(logged()).not.toContain(TOKEN);
  });

  it("is compared as a whole", () => {
    expect(equalSecrets("a", "a")).toBe(true);
    for (const other of ["", "b", "aa", "A", "a\0"]) expect(equalSecrets("a", other)).toBe(false);
  });
});

describe("GET /metrics", () => {
  function scraped(token: string, isReachable = false) {
    const { app } = server();
    const registry = createRegistry();
    httpMetrics(registry, "svc_http").observe({
      method: "GET",
      route: "/x",
      status: 200,
      seconds: 0.1,
      code: undefined,
    });
    metricsRoutes(app, { registry, token, isReachable, paths: ["/metrics", "/v1/metrics"] });
    return app;
  }

  it("is open without a token and offers the text format", async () => {
    const answer = await scraped("").inject({ url: "/metrics" });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers["content-type"]).toContain("text/plain; version=0.0.4");
    expect(answer.payload).toContain('svc_http_requests_total{method="GET",route="/x",status="200"} 1');
  });

  it("is closed without a token where callers from outside can reach it, and opens with the token", async () => {
    for (const authorization of ["", "Bearer ", "Bearer undefined"]) {
      const answer = await scraped("", true).inject({ url: "/metrics", headers: { authorization } });
      expect(answer.statusCode).toBe(401);
      expect(answer.payload).not.toContain("svc_http");
    }
    const headers = { authorization: "Bearer secret-of-metrics" };
    expect((await scraped("secret-of-metrics", true).inject({ url: "/metrics", headers })).statusCode).toBe(
      200,
    );
  });

  it.each([
    [undefined, 401],
    ["", 401],
    ["Bearer", 401],
    ["Bearer wrong", 401],
    ["Basic secret-of-metrics", 401],
    ["Bearer secret-of-metrics", 200],
    ["bearer secret-of-metrics", 200],
  ])("with a token set, %j is answered with %i on both paths", async (authorization, status) => {
    const app = scraped("secret-of-metrics");
    for (const url of ["/metrics", "/v1/metrics"]) {
      const answer = await app.inject({ url, headers: authorization === undefined ? {} : { authorization } });
      expect(answer.statusCode).toBe(status);
      if (status === 401) expect(answer.payload).not.toContain("svc_http");
    }
  });
});

describe("failures", () => {
  const SECRET = "redis://user:password@10.1.2.3/secret";

  it.each([
    ["an Error", () => new Error(SECRET)],
    ["a TypeError", () => new TypeError(SECRET)],
    ["an error with a status of its own", () => Object.assign(new Error(SECRET), { statusCode: 418 })],
    ["an error with a code of the table", () => Object.assign(new Error(SECRET), { code: "not_found" })],
    ["a text", () => SECRET],
    ["nothing", () => undefined],
  ])("%s is internal_error: the client sees nothing of it", async (what, make) => {
    const { app, logged } = server();
    app.get("/fails", async () => {
      throw make();
    });
    const answer = await app.inject({ url: "/fails" });
    expect(answer.statusCode).toBe(500);
    expect(answer.json()).toEqual({
      error: "internal_error",
      message: "Something went wrong inside the service.",
      request_id: answer.headers["x-request-id"],
    });
    expect(answer.payload).not.toContain("password");
    if (what !== "nothing") expect(logged()).toContain(String(answer.headers["x-request-id"]));
  });

  it("an error of the table keeps its status, fields and headers", async () => {
    const { app } = server();
    app.get("/fails", async () => {
      throw new ServiceError("rate_limited", "Slow down.", {
        headers: { "retry-after": "3" },
        extra: { retry_after: 3 },
      });
    });
    const answer = await app.inject({ url: "/fails" });
    expect(answer.statusCode).toBe(429);
    expect(answer.headers["retry-after"]).toBe("3");
    expect(answer.json()).toMatchObject({ error: "rate_limited", message: "Slow down.", retry_after: 3 });
  });
});
