import { ServiceError } from "@svc/contracts";
import { afterEach, describe, expect, it } from "vitest";
import type { HttpServer, Lifecycle } from "../../src/index.ts";
import { testApp } from "../support/app.ts";

const apps: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

function server(...args: Parameters<typeof testApp>) {
  const made = testApp(...args);
  apps.push(made.app);
  return made;
}

function withRoutes() {
  const { app } = server();
  app.get("/things", async () => ({ ok: true }));
  app.post("/things", async () => ({ ok: true }));
  app.delete("/things/:id/parts/:part", async () => ({ ok: true }));
  return app;
}

describe("routes", () => {
  it.each([
    "/",
    "/nothing",
    "/things/",
    "/THINGS",
    "/things/1",
    "/things/1/parts",
    "/things%2F1",
    "/../things/x",
  ])("GET %s is unknown: 404 with the error body", async (url) => {
    const answer = await withRoutes().inject({ method: "GET", url });
    expect(answer.statusCode).toBe(404);
    expect(answer.json()).toEqual({
      error: "not_found",
      message: "There is no such route.",
      request_id: answer.headers["x-request-id"],
    });
    expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8");
  });

  it.each([
    ["PUT", "/things", "GET, HEAD, POST"],
    ["PATCH", "/things?x=1", "GET, HEAD, POST"],
    ["OPTIONS", "/things", "GET, HEAD, POST"],
    ["GET", "/things/1/parts/2", "DELETE"],
    ["POST", "/things/a.b/parts/%2F", "DELETE"],
  ] as const)("%s %s is the wrong method: 405 with Allow", async (method, url, allow) => {
    const answer = await withRoutes().inject({ method, url });
    expect(answer.statusCode).toBe(405);
    expect(answer.json().error).toBe("method_not_allowed");
    expect(answer.headers.allow).toBe(allow);
  });

  it("a parameter of thousands of characters is answered, not thrown", async () => {
    const answer = await withRoutes().inject({
      method: "DELETE",
      url: `/things/${"a".repeat(5000)}/parts/1`,
    });
    expect(answer.statusCode).toBe(404);
    expect(answer.json().error).toBe("not_found");
  });

  it.each(["/things/%/parts/1", "/things/%zz/parts/1", "/things/%c3%28/parts/1"])(
    "the broken escape in %s is a 404 with the error body",
    async (url) => {
      const answer = await withRoutes().inject({ method: "DELETE", url });
      expect(answer.statusCode).toBe(404);
      expect(answer.json()).toMatchObject({ error: "not_found" });
      expect(answer.headers["x-request-id"]).toBe(answer.json().request_id);
    },
  );
});

describe("request ids", () => {
  it.each(["a", "0.Az_9:-", "x".repeat(128)])("%s is echoed", async (id) => {
    const answer = await withRoutes().inject({ url: "/things", headers: { "x-request-id": id } });
    expect(answer.headers["x-request-id"]).toBe(id);
  });

  it.each(["", " ", "a b", "x".repeat(129), "é", "a\tb", "a;b", "a/b", '"'])("%j is replaced", async (id) => {
    const answer = await withRoutes().inject({ url: "/things", headers: { "x-request-id": id } });
    expect(answer.headers["x-request-id"]).not.toBe(id);
    expect(answer.headers["x-request-id"]).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
  });

  it("are new on every request that brings none, and stand in the error body too", async () => {
    const app = withRoutes();
    const answers = await Promise.all([1, 2, 3].map(() => app.inject({ url: "/nothing" })));
    const ids = answers.map(({ headers }) => headers["x-request-id"]);
    expect(new Set(ids).size).toBe(3);
    expect(answers.map((answer) => answer.json().request_id)).toEqual(ids);
  });
});

describe("start-up and shutdown", () => {
  function at(state: Lifecycle["state"]) {
    const { app, logged } = server({ lifecycle: { state }, alwaysOn: ["/health"] });
    app.get("/health", async () => ({ ok: true }));
    const guard = (_request: unknown, _reply: unknown, done: (error?: Error) => void) =>
      done(new ServiceError("unauthorized"));
    app.get("/guarded", { onRequest: guard }, async () => ({ ok: true }));
    app.post("/work", async () => ({ ok: true }));
    return { app, levels: () => [...logged().matchAll(/"level":(\d+)/g)].map(([, level]) => Number(level)) };
  }

  it("while it starts, work is refused and health still answers", async () => {
    const { app } = at("starting");
    const refused = await app.inject({ method: "POST", url: "/work", payload: { a: 1 } });
    expect(refused.statusCode).toBe(503);
    expect(refused.json().error).toBe("starting_up");
    expect((await app.inject({ url: "/health" })).statusCode).toBe(200);
  });

  it("the refusal comes after route, method and credentials and before the body", async () => {
    const { app } = at("starting");
    expect((await app.inject({ url: "/nothing" })).statusCode).toBe(404);
    expect((await app.inject({ url: "/work" })).statusCode).toBe(405);
    expect((await app.inject({ url: "/guarded" })).statusCode).toBe(401);
    const broken = { method: "POST", url: "/work", headers: { "content-type": "application/json" } } as const;
    expect((await app.inject({ ...broken, payload: "{" })).json().error).toBe("starting_up");
  });

  it("that it starts is no fault, by which the log would alarm somebody", async () => {
    const { app, levels } = at("starting");
    expect((await app.inject({ method: "POST", url: "/work", payload: {} })).statusCode).toBe(503);
    expect(levels().filter((level) => level > 30)).toEqual([]);
  });

  it.each([
    ["runner_busy", 20],
    ["queue_saturated", 40],
    ["storage_unavailable", 50],
  ] as const)("%s is logged at level %i: to have no room is no fault either", async (code, most) => {
    const { app, levels } = at("running");
    app.post("/crowded", async () => {
      throw new ServiceError(code);
    });
    expect((await app.inject({ method: "POST", url: "/crowded", payload: {} })).statusCode).toBe(503);
    expect(Math.max(...levels())).toBe(most);
  });

  it("work is done again as soon as the state says so", async () => {
    const lifecycle: Lifecycle = { state: "starting" };
    const { app } = server({ lifecycle });
    app.get("/work", async () => ({ ok: true }));
    expect((await app.inject({ url: "/work" })).statusCode).toBe(503);
    lifecycle.state = "running";
    expect((await app.inject({ url: "/work" })).json()).toEqual({ ok: true });
  });
});
