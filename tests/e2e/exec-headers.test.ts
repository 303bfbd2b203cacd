/** Headers of POST /v1/exec that change what happens: Idempotency-Key, profiles, workspaces, and those without effect. */
import { createHash } from "node:crypto";
import { type ExecResponse, LOCAL_PRINCIPAL, namespaceOf } from "@svc/contracts";
import { VERSION } from "@svc/service-kit";
import { slow } from "@svc/test-kit/jail/slowness";
import { type Answer, Api } from "@svc/test-kit/system/api";
import { newMarker, processesWith } from "@svc/test-kit/system/processes";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, describe, expect, test } from "vitest";
import { openStore } from "./support/store.ts";

const api = new Api(sharedSystem().url);
const store = openStore(sharedSystem());
afterAll(() => store.disconnect());

/** A program whose output differs from run to run. */
const RANDOM = { lang: "bash", code: "head -c 16 /dev/urandom | base64; echo > made.txt" };
const SLOW = { lang: "bash", code: "sleep 1.5; head -c 16 /dev/urandom | base64" };
const keyed = (key: string) => ({ headers: { "idempotency-key": key } });
/** Where the API keeps what it has run, or runs, under this key. */
const entryOf = (key: string) =>
  `svc:idempotency:${createHash("sha256")
    .update(`${namespaceOf(LOCAL_PRINCIPAL, { kind: "user" })}\n${key}`)
    .digest("base64url")}`;
const isReplay = (answer: Answer) => answer.headers.get("idempotency-replayed");

describe("Idempotency-Key", () => {
  test("the same request again gives the same answer and runs nothing", async () => {
    const first = await api.tryExec(RANDOM, keyed("again"));
    const second = await api.tryExec({ code: RANDOM.code, lang: RANDOM.lang }, keyed("again"));
    expect([isReplay(first), isReplay(second)]).toEqual([null, "true"]);
    expect(second.ok()).toEqual(first.ok());
    expect(second.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
    const other = await api.tryExec(RANDOM, keyed("another"));
    expect(other.ok<ExecResponse>().stdout).not.toBe(first.ok<ExecResponse>().stdout);
  });

  test("requests at the same time run once and all get the answer", async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => api.tryExec(SLOW, keyed("together"))));
    const outputs = new Set(answers.map((answer) => answer.ok<ExecResponse>().stdout));
    expect(outputs.size).toBe(1);
    expect(answers.map(isReplay).filter((replayed) => replayed === null)).toHaveLength(1);
  });

  test("another body under the same key is refused, before and after the first has ended", async () => {
    const running = api.tryExec(SLOW, keyed("once"));
    await expect.poll(() => store.exists(entryOf("once"))).toBe(1);
    for (const wait of [undefined, running]) {
      await wait;
      const refused = await api.tryExec({ ...SLOW, args: ["other"] }, keyed("once"));
      expect([refused.status, refused.refusal.error]).toEqual([422, "idempotency_key_reused"]);
    }
  });

  test("only a 200 is kept: a refused request may be corrected under its key", async () => {
    const wrong = await api.tryExec({ lang: "none", code: "" }, keyed("corrected"));
    expect(wrong.status).toBe(400);
    expect((await api.tryExec(RANDOM, keyed("corrected"))).status).toBe(200);
  });

  test("a program that fails is a 200 and is kept", async () => {
    const failing = { lang: "bash", code: "date +%s%N; exit 3" };
    const [first, second] = [
      await api.exec(failing, keyed("fails")),
      await api.exec(failing, keyed("fails")),
    ];
    expect(first.code).toBe(3);
    expect(second).toEqual(first);
  });

  test("the first client leaves while the second waits: the program ends and answers", async () => {
    const program = { lang: "bash", code: `sleep ${slow(10)}; echo "$1"`, args: [newMarker()] };
    const [marker = ""] = program.args;
    const left = new AbortController();
    const first = api
      .tryExec(program, { ...keyed("left"), signal: left.signal })
      .catch((error: Error) => error.name);
    await expect.poll(() => processesWith(marker).length).toBeGreaterThan(0);
    const second = api.tryExec(program, keyed("left"));
    await expect.poll(() => store.exists(`${entryOf("left")}:waiter`)).toBe(1);
    left.abort();
    expect(await first).toBe("AbortError");
    const answer = await second;
    expect(isReplay(answer)).toBe("true");
    expect(answer.ok<ExecResponse>()).toMatchObject({ code: 0, status: null, stdout: `${marker}\n` });
  });

  test.each(["", "x".repeat(256), "tab\there"])("the key %j is refused", async (key) => {
    const refused = await api.tryExec(RANDOM, keyed(key));
    expect([refused.status, refused.refusal.error]).toEqual([400, "invalid_request"]);
    expect(refused.refusal.details?.[0]?.path).toBe("Idempotency-Key");
  });
});

describe("profiles and workspaces", () => {
  const withHeader = (name: string, value: string) => api.tryExec(RANDOM, { headers: { [name]: value } });

  test("the default profile is offered, the stateful one is not, others mean nothing", async () => {
    expect((await withHeader("X-CodeAPI-Expected-Profile", "default")).status).toBe(200);
    expect((await withHeader("X-CodeAPI-Expected-Profile", "something")).status).toBe(200);
    const refused = await withHeader("X-CodeAPI-Expected-Profile", "stateful");
    expect([refused.status, refused.refusal.error]).toEqual([422, "execution_profile_mismatch"]);
  });

  test("attached workspaces are refused as header and as field", async () => {
    const header = await withHeader("X-LibreChat-Code-Workspace-ID", "w1");
    const field = await api.tryExec({ ...RANDOM, workspace_instance_id: "w1" });
    for (const refused of [header, field]) {
      expect([refused.status, refused.refusal.error]).toEqual([422, "stateful_workspace_unsupported"]);
    }
    expect((await api.tryExec({ ...RANDOM, workspace_instance_id: null })).status).toBe(200);
  });

  test("hints of persistent sessions are ignored unread", async () => {
    const hints = [
      { runtime_session_hint: "fine" },
      { runtime_session_hint: 5 },
      { session_id: "not an id" },
      { session_id: { a: 1 } },
    ];
    for (const hint of hints) expect((await api.exec({ ...RANDOM, ...hint })).status).toBeNull();
  });

  test("headers that name a user are no identity", async () => {
    const stranger = {
      "x-api-key": "k",
      "user-id": "stranger",
      "user-agent": "curl",
      authorization: "Basic eDp5",
    };
    const answer = await api.exec({ ...RANDOM, user_id: "stranger" }, { headers: stranger });
    const [made] = answer.files;
    expect(made?.resource_id).not.toBe("stranger");
    expect(made && (await api.bytes(made)).toString()).toBe("\n");
  });
});

describe("health", () => {
  test("liveness and readiness of a running system", async () => {
    expect((await api.send("GET", "/health")).ok()).toEqual({ status: "ok", version: VERSION });
    expect((await api.send("GET", "/health/detailed")).ok()).toMatchObject({
      checks: { canary: { last_success: { python: expect.any(String), other: expect.any(String) } } },
    });
    expect((await api.send("GET", "/ready")).ok()).toMatchObject({ status: "ready" });
  });

  test("metrics count what was run", async () => {
    const { text } = await api.send("GET", "/metrics");
    expect(Number(/^svc_jobs_submitted_total\{language="bash"\} (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(5);
    expect(text).toMatch(/^svc_http_requests_total\{method="POST",route="\/v1\/exec",status="200"\} \d+$/m);
  });
});
