/** Callers of different plans at one API: each meets the limits of the plan that its token names, and no others. */
import { randomBytes } from "node:crypto";
import { apiKeyRecord, apiKeysFile, newApiKey } from "@svc/test-kit/credentials/api-keys";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FORM_TYPE, formBytes } from "../../support/file-api.ts";
import { type IdentityApi, startIdentityApi } from "../../support/identity-api.ts";

const SMALL = 1000;
const CEILING = 5000;
const MEMORY = 64 * 2 ** 20;
const PLANS = {
  small: { max_file_size: SMALL, run_memory_limit: MEMORY },
  open: {},
  huge: { max_file_size: "1g", run_memory_limit: "1g" },
  default: { max_file_size: 100 },
};

let api: IdentityApi;
const keysFile = apiKeysFile();
const [smallKey, plainKey] = [newApiKey(), newApiKey()];
beforeAll(async () => {
  keysFile.put([apiKeyRecord(smallKey, { plan: "small" }), apiKeyRecord(plainKey)]);
  api = await startIdentityApi({
    MAX_FILE_SIZE: String(CEILING),
    SVC_PLAN_LIMITS: JSON.stringify(PLANS),
    SVC_API_KEYS_FILE: keysFile.path,
  });
});
afterAll(async () => {
  await api?.stop();
  keysFile.remove();
});

const as = (plan: unknown) => ({
  authorization: `Bearer ${api.signer.mint({ claims: { plan_id: plan } })}`,
});

async function upload(plan: unknown, sizes: readonly number[], route = "upload") {
  const answer = await fetch(`${api.url}/v1/${route}`, {
    method: "POST",
    headers: { "content-type": FORM_TYPE, ...as(plan) },
    body: formBytes(sizes.map((size) => ({ filename: `${size}`, body: randomBytes(size) }))),
  });
  return {
    status: answer.status,
    body: (await answer.json()) as { error?: string; message: string; files?: { error?: string }[] },
  };
}

describe("the size of an uploaded file", () => {
  test.each([
    ["small", SMALL],
    ["open", CEILING],
    ["huge", CEILING],
    ["unlisted", 100],
    ["", 100],
    ["__proto__", 100],
    [null, 100],
    [undefined, 100],
  ])("with plan %j may be %i bytes, and not one more", async (plan, limit) => {
    expect((await upload(plan, [limit])).status).toBe(200);
    const refused = await upload(plan, [limit + 1]);
    expect([refused.status, refused.body.error]).toEqual([413, "file_too_large"]);
    expect(refused.body.message).toContain(`${limit.toLocaleString("en")} bytes`);
  });

  test("is judged file by file in a batch, also when all together are many times the plan's", async () => {
    const { status, body } = await upload("small", [CEILING, SMALL, CEILING, CEILING], "upload/batch");
    expect(status).toBe(200);
    expect(body.files?.map(({ error }) => error)).toEqual([
      "file_too_large",
      undefined,
      "file_too_large",
      "file_too_large",
    ]);
  });
});

describe("the memory of a run", () => {
  test.each([
    ["small", MEMORY],
    ["huge", 2 ** 30],
    ["open", undefined],
    [undefined, undefined],
  ])("travels in the job of a caller with plan %j", async (plan, expected) => {
    api.ran.length = 0;
    const answer = await fetch(`${api.url}/v1/exec`, {
      method: "POST",
      headers: { "content-type": "application/json", ...as(plan) },
      body: JSON.stringify({ lang: "py", code: "", run_memory_limit: 2 ** 40, plan_id: "open" }),
    });
    expect(answer.status).toBe(200);
    expect(api.ran.map(({ run_memory_limit }) => run_memory_limit)).toEqual([expected]);
  });
});

test("an API key has the limits of its plan, or of default", async () => {
  api.ran.length = 0;
  const sizeLimits: string[] = [];
  for (const key of [smallKey, plainKey]) {
    const headers = { "x-api-key": key };
    await fetch(`${api.url}/v1/exec`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ lang: "py", code: "" }),
    });
    const refused = await fetch(`${api.url}/v1/upload`, {
      method: "POST",
      headers: { "content-type": FORM_TYPE, ...headers },
      body: formBytes([{ filename: "f", body: randomBytes(SMALL + 1) }]),
    });
    sizeLimits.push(((await refused.json()) as { message: string }).message);
  }
  expect(api.ran.map(({ run_memory_limit }) => run_memory_limit)).toEqual([MEMORY, undefined]);
  expect(sizeLimits).toEqual([
    expect.stringContaining(`${SMALL.toLocaleString("en")} bytes`),
    expect.stringContaining("100 bytes"),
  ]);
});

test("a plan that is not text is not a valid token", async () => {
  for (const plan of [1, {}, ["small"], "x".repeat(257)]) {
    expect((await upload(plan, [1])).status).toBe(401);
  }
});

test("the plan is no part of the namespace: files stay usable when it changes", async () => {
  api.ran.length = 0;
  for (const plan of ["small", "open"]) {
    await fetch(`${api.url}/v1/exec`, {
      method: "POST",
      headers: { "content-type": "application/json", ...as(plan) },
      body: JSON.stringify({ lang: "py", code: "" }),
    });
  }
  expect(new Set(api.ran.map(({ output_namespace }) => output_namespace))).toEqual(new Set(["t1:user:u1"]));
});
