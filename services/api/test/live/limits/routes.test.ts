import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "@svc/contracts";
import { startComponent } from "@svc/test-kit/components/component";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OK, workFor } from "../../support/consumer.ts";
import { limitHeaders, type Replicas, startReplicas } from "../../support/replicas.ts";

const CLIENTS = 64;
let made: Replicas;
const start = async (count = 1, env: Record<string, string> = {}) => {
  made = await startReplicas(count, env);
  return made;
};
afterEach(() => made.stop());

const call = (method: string, path: string, init: RequestInit = {}, at = 0) =>
  fetch(`${made.urls[at]}${path}`, { method, ...init });
const exec = (at = 0, init: RequestInit = {}) =>
  call(
    "POST",
    "/exec",
    { headers: { "content-type": "application/json" }, body: '{"lang":"py","code":"1"}', ...init },
    at,
  );
const form = () => {
  const body = new FormData();
  body.append("file", new Blob(["content"]), "a.txt");
  return { body };
};
const uploaded = async () => {
  const { files, storage_session_id } = (await (await call("POST", "/upload", form())).json()) as {
    files: { id: string }[];
    storage_session_id: string;
  };
  return { session: storage_session_id, file: files[0]?.id ?? "" };
};
const told = (requests: number, seconds: number, remaining: number) => ({
  "ratelimit-limit": String(requests),
  "ratelimit-remaining": String(remaining),
  "ratelimit-reset": expect.stringMatching(/^[1-9]\d*$/),
  "ratelimit-policy": `${requests};w=${seconds}`,
});
const statuses = (answers: readonly Response[]) => answers.map(({ status }) => status);
const count = (values: readonly number[], wanted: number) =>
  values.filter((value) => value === wanted).length;
const refusals = async (scope: string) => {
  const text = await (made.replicas[0] as Replicas["replicas"][0]).registry.metrics();
  return Number(
    new RegExp(`^svc_rate_limited_total\\{scope="${scope}"\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0,
  );
};
async function expectRefused(answer: Response, limit: number, seconds: number): Promise<void> {
  expect(answer.status).toBe(429);
  const headers = limitHeaders(answer);
  const wait = Number(headers["retry-after"]);
  expect(headers).toEqual({ ...told(limit, seconds, 0), "retry-after": headers["ratelimit-reset"] });
  expect(wait).toBeGreaterThanOrEqual(1);
  expect(wait).toBeLessThanOrEqual(seconds);
  expect(await answer.json()).toEqual({
    error: "rate_limited",
    message: expect.stringContaining(`${limit} are allowed in ${seconds} s`),
    request_id: answer.headers.get("x-request-id"),
    retry_after_seconds: wait,
    retry_after: wait,
  });
}

describe("every scope", () => {
  beforeEach(async () => {
    await start(1, {
      MAX_REQUESTS: "2",
      UPLOAD_MAX_REQUESTS: "2",
      DOWNLOAD_MAX_REQUESTS: "3",
      FETCH_MAX_REQUESTS: "4",
    });
  });

  it("executions: tells the window with success and error, then refuses", async () => {
    await made.consume({ work: async () => OK });
    const first = await exec();
    expect([first.status, limitHeaders(first)]).toEqual([200, told(2, 30, 1)]);
    const wrong = await exec(0, { body: "{" });
    expect([wrong.status, limitHeaders(wrong)]).toEqual([400, told(2, 30, 0)]);
    await expectRefused(await exec(), 2, 30);
    expect(await refusals("executions")).toBe(1);
  });

  it("uploads: both routes share the window", async () => {
    expect(limitHeaders(await call("POST", "/upload", form()))).toEqual(told(2, 300, 1));
    const batch = await call("POST", "/upload/batch", form());
    expect([batch.status, limitHeaders(batch)]).toEqual([200, told(2, 300, 0)]);
    await expectRefused(await call("POST", "/upload/batch", form()), 2, 300);
    await expectRefused(await call("POST", "/upload", form()), 2, 300);
    expect(await refusals("uploads")).toBe(2);
  });

  it("downloads: GET, HEAD, 304 and errors share the window", async () => {
    const { session, file } = await uploaded();
    const head = await call("HEAD", `/download/${session}/${file}`);
    expect([head.status, limitHeaders(head)]).toEqual([200, told(3, 60, 2)]);
    const etag = head.headers.get("etag") ?? "";
    const same = await call("GET", `/download/${session}/${file}`, { headers: { "if-none-match": etag } });
    expect([same.status, limitHeaders(same)]).toEqual([304, told(3, 60, 1)]);
    const gone = await call("GET", `/download/${session}/${newId()}`);
    expect([gone.status, limitHeaders(gone)]).toEqual([404, told(3, 60, 0)]);
    await expectRefused(await call("GET", `/download/${session}/${file}`), 3, 60);
    const refused = await call("HEAD", `/download/${session}/${file}`);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([
      429,
      refused.headers.get("ratelimit-reset"),
    ]);
  });

  it("metadata, list and delete share the window", async () => {
    const { session, file } = await uploaded();
    const answers = [
      await call("GET", `/sessions/${session}/objects/${file}`),
      await call("GET", `/files/${session}?detail=wrong`),
      await call("DELETE", `/files/${session}/${file}`),
      await call("GET", "/files/short"),
    ];
    expect(answers.map((answer) => [answer.status, limitHeaders(answer)])).toEqual([
      [200, told(4, 60, 3)],
      [400, told(4, 60, 2)],
      [200, told(4, 60, 1)],
      [400, told(4, 60, 0)],
    ]);
    await expectRefused(await call("GET", `/files/${session}`), 4, 60);
    expect(await refusals("fetches")).toBe(1);
  });

  it("the routes of sessions share it, too, also where none are kept", async () => {
    const answers = [
      await call("GET", "/sessions"),
      await call("GET", `/sessions/${newId()}/files`),
      await call("DELETE", `/sessions/${newId()}`),
      await call("GET", "/sessions/short/files"),
    ];
    expect(answers.map((answer) => [answer.status, limitHeaders(answer)])).toEqual([
      [404, told(4, 60, 3)],
      [404, told(4, 60, 2)],
      [404, told(4, 60, 1)],
      [400, told(4, 60, 0)],
    ]);
    await expectRefused(await call("GET", "/sessions"), 4, 60);
  });

  it("leaves the open routes, unknown routes and wrong methods alone", async () => {
    for (const [method, path] of [
      ["GET", "/health"],
      ["GET", "/metrics"],
      ["GET", "/nothing"],
      ["PUT", "/exec"],
    ] as const) {
      expect(limitHeaders(await call(method, path))).toEqual({});
    }
    // Nothing runs here, so it says when to ask again.
    expect(limitHeaders(await call("GET", "/ready"))).toEqual({ "retry-after": "2" });
  });
});

describe("the order of checks", () => {
  it("counts requests of a component that starts, and refuses before that is said", async () => {
    await start(1, { FETCH_MAX_REQUESTS: "1" });
    const [replica] = made.replicas;
    if (replica !== undefined) replica.lifecycle.state = "starting";
    const first = await call("GET", `/files/${newId()}`);
    expect([first.status, limitHeaders(first)]).toEqual([503, { ...told(1, 60, 0), "retry-after": "2" }]);
    await expectRefused(await call("GET", `/files/${newId()}`), 1, 60);
  });

  it("refuses before the body is looked at", async () => {
    await start(1, { MAX_REQUESTS: "1", SVC_HTTP_JSON_LIMIT: "1024" });
    expect((await exec(0, { body: "x".repeat(5000) })).status).toBe(422);
    await expectRefused(await exec(0, { body: "x".repeat(5000) }), 1, 30);
  });
});

describe("two replicas", () => {
  it("let exactly the allowed number pass under 64 clients at once", async () => {
    await start(2, { FETCH_MAX_REQUESTS: "25" });
    const path = `/files/${newId()}`;
    const answers = await Promise.all(
      Array.from({ length: CLIENTS }, (_, at) => call("GET", path, {}, at % 2)),
    );
    expect(count(statuses(answers), 404)).toBe(25);
    expect(count(statuses(answers), 429)).toBe(CLIENTS - 25);
    const remaining = answers
      .filter(({ status }) => status === 404)
      .map((answer) => Number(answer.headers.get("ratelimit-remaining")));
    expect(remaining.sort((left, right) => left - right)).toEqual(Array.from({ length: 25 }, (_, at) => at));
  });

  it("let exactly as many executions wait or run as there are seats; the others may come later", async () => {
    await start(2, { MAX_REQUESTS: "1000", SVC_MAX_CONCURRENT_EXECUTIONS: "5" });
    const allRefused = Promise.withResolvers<void>();
    await made.consume({ work: () => allRefused.promise.then(() => OK) });
    let answered = 0;
    const sent = Array.from({ length: CLIENTS }, async (_, at) => {
      const answer = await exec(at % 2);
      if (++answered === CLIENTS - 5) allRefused.resolve();
      return answer;
    });
    const answers = await Promise.all(sent);
    expect(count(statuses(answers), 200)).toBe(5);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(CLIENTS - 5);
    const [one] = refused as [Response];
    expect(limitHeaders(one)).toEqual({
      ...told(1000, 30, 0),
      "ratelimit-remaining": expect.stringMatching(/^9\d\d$/),
      "retry-after": "1",
    });
    expect(await one.json()).toMatchObject({
      error: "rate_limited",
      retry_after_seconds: 1,
      retry_after: 1,
      message: expect.stringContaining("5 may wait or run"),
    });
    const again = await Promise.all(Array.from({ length: 5 }, (_, at) => exec(at % 2)));
    expect(statuses(again)).toEqual([200, 200, 200, 200, 200]);
    expect(await refusals("concurrent_executions")).toBeGreaterThan(0);
  });
});

describe("callers with tokens", () => {
  it("have windows and seats of their own; a caller without a valid token is not counted", async () => {
    const signer = newSigner();
    await start(1, {
      LOCAL_MODE: "false",
      SVC_JWT_PUBLIC_KEY: signer.pem,
      SVC_JWT_KID: KID,
      FETCH_MAX_REQUESTS: "1",
      SVC_MAX_CONCURRENT_EXECUTIONS: "1",
    });
    const { started } = await made.consume({ work: (_job, cancelled) => workFor(1000, cancelled) });
    const as = (claims: Record<string, unknown>) => ({ authorization: `Bearer ${signer.mint({ claims })}` });
    const list = (headers: Record<string, string>) => call("GET", `/files/${newId()}`, { headers });
    for (let round = 0; round < 3; round++) {
      const unknown = await list({ authorization: "Bearer nobody" });
      expect([unknown.status, limitHeaders(unknown)]).toEqual([401, {}]);
    }
    const run = (headers: Record<string, string>) =>
      exec(0, { headers: { ...headers, "content-type": "application/json" } });
    const [alice, bob, other] = [
      as({ sub: "alice" }),
      as({ sub: "bob" }),
      as({ sub: "alice", tenant_id: "t2" }),
    ];
    const running: Promise<Response>[] = [];
    for (const [at, who] of [alice, bob, other].entries()) {
      expect((await list(who)).status).toBe(404);
      await expectRefused(await list(who), 1, 60);
      running.push(run(who));
      await expect.poll(() => started.length).toBe(at + 1);
    }
    // Another token of the same user is the same caller.
    await expectRefused(await list(as({ sub: "alice" })), 1, 60);
    expect((await run(as({ sub: "alice" }))).status).toBe(429);
    expect(statuses(await Promise.all(running))).toEqual([200, 200, 200]);
  });
});

describe("a seat", () => {
  beforeEach(async () => {
    await start(1, { MAX_REQUESTS: "1000", SVC_MAX_CONCURRENT_EXECUTIONS: "1" });
  });

  it("is free again after refusals of every kind", async () => {
    await made.consume({ work: async () => OK });
    for (const init of [{ body: "{" }, { body: "{}" }, { headers: { "content-type": "text/plain" } }]) {
      expect((await exec(0, init)).status).toBe(400);
    }
    expect((await exec()).status).toBe(200);
    expect((await exec()).status).toBe(200);
  });

  it("is not needed to go on with a program or to cancel one", async () => {
    const { started, cancelled } = await made.consume({ work: (_job, stop) => workFor(30_000, stop) });
    const client = new AbortController();
    const running = exec(0, { signal: client.signal }).catch((error: unknown) => error);
    await expect.poll(() => started.length).toBe(1);
    const send = (path: string, body: unknown) =>
      call("POST", path, {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const resume = { continuation_token: "forged", tool_results: [{ call_id: "call_001" }] };
    const [resumed, removed, begun] = await Promise.all([
      send("/exec/programmatic", resume),
      send("/exec/programmatic/cancel", { request_id: "nothing" }),
      send("/exec/programmatic", { code: "1", tools: [] }),
    ]);
    expect(statuses([resumed, removed, begun])).toEqual([400, 200, 429]);
    expect(await resumed.json()).toMatchObject({ error: "invalid_continuation_token" });
    client.abort();
    await running;
    await expect.poll(() => cancelled.length).toBe(1);
  });

  it("is free when its client has left and the run is cancelled", async () => {
    const { started, cancelled } = await made.consume({ work: (_job, stop) => workFor(30_000, stop) });
    const client = new AbortController();
    const left = exec(0, { signal: client.signal }).catch((error: unknown) => error);
    await expect.poll(() => started.length).toBe(1);
    expect((await exec()).status).toBe(429);
    client.abort();
    await left;
    await expect.poll(() => cancelled.length).toBe(1);
    await expect.poll(() => made.redis.keys("svc:seats:*")).toEqual([]);
  });

  it("is free when its client left while the store was slow, and nothing runs", async () => {
    const { started } = await made.consume({ work: async () => OK });
    await made.redis.call("CLIENT", "PAUSE", "1500", "WRITE");
    const client = new AbortController();
    const left = exec(0, { signal: client.signal }).catch((error: unknown) => error);
    await sleep(200);
    client.abort();
    await left;
    // Written when the pause is over.
    await made.redis.set("written", "1", "PX", 1);
    await expect.poll(() => made.redis.keys("svc:seats:*")).toEqual([]);
    expect(started).toEqual([]);
    expect((await exec()).status).toBe(200);
    expect(started).toHaveLength(1);
  });

  it("of a process that was killed is free soon after", async () => {
    const other = await startComponent("api", { ...made.settings, LOG_LEVEL: "info" });
    const lost = fetch(`${other.url}/v1/exec`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"lang":"py","code":"1"}',
    }).catch((error: unknown) => error);
    await expect.poll(() => made.redis.keys("svc:seats:*")).toHaveLength(1);
    await other.kill();
    await lost;
    expect((await exec()).status).toBe(429);
    await made.consume({ work: async () => OK });
    await expect.poll(async () => (await exec()).status, { interval: 500 }).toBe(200);
  });
});

describe("a store that is away", () => {
  it("lets nothing through: 503 on every limited route, health stays", async () => {
    await start();
    await made.server.kill();
    const answers = await Promise.all([
      exec(),
      call("POST", "/upload", form()),
      call("GET", `/download/${newId()}/${newId()}`),
      call("GET", `/files/${newId()}`),
    ]);
    expect(statuses(answers)).toEqual([503, 503, 503, 503]);
    for (const answer of answers) expect(await answer.json()).toMatchObject({ error: "store_unavailable" });
    expect(answers.map(limitHeaders)).toEqual(
      ["20;w=30", "30;w=300", "60;w=60", "120;w=60"].map((policy) => ({
        "ratelimit-limit": policy.split(";")[0],
        "ratelimit-policy": policy,
        "retry-after": "2",
      })),
    );
    // Requests wait less once it has been away for longer than a command may wait.
    const waitMs = () => made.redis.options.commandTimeout;
    await expect.poll(waitMs).toBe(1000);
    expect((await exec()).status).toBe(503);
    expect((await call("GET", "/health")).status).toBe(200);
    await made.server.start();
    await expect.poll(async () => (await call("GET", `/files/${newId()}`)).status).toBe(404);
    await expect.poll(waitMs).toBe(3000);
  });
});
