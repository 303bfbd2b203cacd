/** Quotas of stored files as callers meet them: uploads, outputs of runs, states of sessions. Each test is a user of its own. */
import type { ExecResponse, UploadedFile, Usage } from "@svc/contracts";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import {
  type Answer,
  Api,
  type BatchAnswer,
  type FormPart,
  type UploadAnswer,
} from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

const MAX_BYTES = 50_000;
const MAX_OBJECTS = 6;
const signer = newSigner();
let system: System;
let tokenApi: SecondApi;
let api: Api;

beforeAll(async () => {
  const env = {
    ...OPEN_LIMITS,
    SVC_PERSIST_SESSIONS: "true",
    SVC_QUOTA_MAX_BYTES: String(MAX_BYTES),
    SVC_QUOTA_MAX_OBJECTS: String(MAX_OBJECTS),
    SVC_QUOTA_SESSION_STATE_MAX_BYTES: "30000",
  };
  system = await startSystem({ env });
  tokenApi = await startSecondApi(system, {
    ...env,
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
  });
  api = new Api(tokenApi.url);
});

afterAll(async () => {
  expect(await tokenApi.stop()).toBe(0);
  expect(await system.stop()).toEqual([]);
});

const as = (sub: string) => ({ headers: { authorization: `Bearer ${signer.mint({ claims: { sub } })}` } });
const file = (name: string, bytes: number): FormPart => ({ name, content: "x".repeat(bytes) });
const upload = (user: string, parts: readonly FormPart[], path = "/upload"): Promise<Answer> =>
  api.form(path, parts, as(user));
const uploaded = async (user: string, parts: readonly FormPart[]): Promise<UploadedFile[]> =>
  (await upload(user, parts)).ok<UploadAnswer>().files;
const remove = (user: string, { storage_session_id, id }: UploadedFile, query = "") =>
  api.send("DELETE", `/files/${storage_session_id}/${id}${query}`, as(user));
const run = (user: string, code: string, more: object = {}): Promise<ExecResponse> =>
  api.exec({ lang: "bash", code, ...more }, as(user));

test("of two uploads that race for the last room exactly one is stored, and others have their own room", async () => {
  const answers = await Promise.all([0, 1].map(() => upload("racer", [file("a", 30_000)])));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 413]);
  const [won, lost] = answers.sort((one, other) => one.status - other.status) as [Answer, Answer];
  expect(lost.refusal).toMatchObject({
    error: "quota_exceeded",
    message: "There is no room for 30,000 more bytes: 30,000 of 50,000 bytes are in use.",
    quota: { kind: "files", resource: "bytes", used: 30_000, limit: MAX_BYTES, asked: 30_000 },
  });
  await uploaded("other", [file("a", MAX_BYTES)]);
  const [stored] = won.ok<UploadAnswer>().files;
  expect((await remove("racer", stored as UploadedFile)).status).toBe(200);
  await uploaded("racer", [file("b", MAX_BYTES)]);
});

test("a caller is told what is used of each quota, and nothing of others", async () => {
  const usage = async (user: string) => (await api.send("GET", "/usage", as(user))).ok<Usage>().quotas;
  const unused = [
    { kind: "files", resource: "bytes", used: 0, limit: MAX_BYTES },
    { kind: "files", resource: "objects", used: 0, limit: MAX_OBJECTS },
    { kind: "session_states", resource: "bytes", used: 0, limit: 30_000 },
  ];
  expect(await usage("reader")).toEqual(unused);
  const [stored] = await uploaded("reader", [file("a", 1234), file("b", 0)]);
  const [bytes, objects, states] = await usage("reader");
  expect([bytes?.used, objects?.used, states?.used]).toEqual([1234, 2, 0]);
  // An output of two bytes, which is in the state of the session, too.
  await run("reader", "echo 1 > kept");
  const kept = (await usage("reader")).at(-1);
  expect(kept?.used).toBeGreaterThan(0);
  expect((await remove("reader", stored as UploadedFile)).status).toBe(200);
  expect((await usage("reader")).map(({ used }) => used).slice(0, 2)).toEqual([2, 2]);
  expect(await usage("stranger")).toEqual(unused);
});

test("more files than the quota has are 429, and those that fit into a batch are stored", async () => {
  const many = Array.from({ length: MAX_OBJECTS + 2 }, (_, at) => file(`f${at}`, 1));
  expect(await upload("collector", many).then(({ status, refusal }) => [status, refusal.error])).toEqual([
    429,
    "quota_exceeded",
  ]);
  const some = (await upload("collector", many, "/upload/batch")).ok<BatchAnswer>();
  expect(some).toMatchObject({ message: "partial_success", succeeded: MAX_OBJECTS, failed: 2 });
  expect(some.files.at(-1)).toMatchObject({
    error: "quota_exceeded",
    message: "There is no room for 1 more file: 6 of 6 files are stored.",
  });
  const none = await upload("collector", many, "/upload/batch");
  expect([none.status, none.refusal.error]).toEqual([429, "upload_failed"]);
});

test("what a user uploads for agents counts as the user's", async () => {
  const agent = (id: string) => [
    { field: "kind", content: "agent" },
    { field: "id", content: id },
  ];
  const [first] = await uploaded("builder", [file("a", 40_000), ...agent("one")]);
  for (const owner of [[], agent("two")]) {
    expect((await upload("builder", [file("b", 20_000), ...owner])).refusal.error).toBe("quota_exceeded");
  }
  expect((await remove("colleague", first as UploadedFile, "?kind=agent&id=one")).status).toBe(200);
  await uploaded("builder", [file("b", 20_000), ...agent("two")]);
});

test("an output without room is omitted and told, and the others come back", async () => {
  await uploaded("runner", [file("a", 30_000)]);
  const answer = await run("runner", "head -c 30000 /dev/zero > large; echo 1 > small");
  expect(answer).toMatchObject({
    code: 0,
    files: [{ name: "small" }],
    files_omitted: [{ name: "large", reason: "quota" }],
    files_omitted_count: 1,
    session_state_persisted: true,
  });
  expect(answer).not.toHaveProperty("artifact_delivery");
  expect(answer.stderr).toMatch(
    /^\[sandbox\] Output file omitted: large \(quota: 30,00\d of 50,000 bytes are in use\)\n$/,
  );
});

test("the state of a session without room is not saved and told, and the older one stays", async () => {
  const begin = (hint: string) =>
    run("keeper", "head -c 20000 /dev/urandom > noise", { runtime_session_hint: hint });
  expect(await begin("one")).toMatchObject({ code: 0, session_state_persisted: true, stderr: "" });
  const second = await begin("two");
  expect(second).toMatchObject({ code: 0, session_state_persisted: false });
  expect(second.stderr).toMatch(
    /^\[sandbox\] Session not saved: no room for it beside the other sessions, 20,\d{3} of 30,000 bytes are in use\n$/,
  );
  expect((await run("keeper", "wc -c < noise", { runtime_session_hint: "one" })).stdout).toBe("20000\n");
});
