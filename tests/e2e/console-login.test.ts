/** The console where authentication is on, and where it is switched off. */
import { apiKeyRecord, apiKeysFile, newApiKey } from "@svc/test-kit/credentials/api-keys";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { until } from "@svc/test-kit/system/processes";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useConsole } from "./support/console.ts";

/** Until the API has read its file of keys again. */
const WAIT_MS = 60_000;
const signer = newSigner();
const keys = apiKeysFile();
const key = newApiKey();
const expired = newApiKey();

let closed: SecondApi;
beforeAll(async () => {
  keys.put([apiKeyRecord(key), apiKeyRecord(expired, { expires_at: "2026-11-25T00:00:00Z" })]);
  closed = await startSecondApi(sharedSystem(), {
    LOCAL_MODE: "false",
    SVC_API_KEYS_FILE: keys.path,
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
  });
});
afterAll(async () => {
  await closed?.stop();
  keys.remove();
});

const { page, open, runs, drops, output, button } = useConsole(() => [closed.url]);
const field = () => page().getByLabel("API key or access token");
async function give(credential: string): Promise<void> {
  await field().fill(credential);
  await button("Continue").click();
}

/** All that a browser keeps of the page, but for its memory. */
const keptByBrowser = () =>
  page().evaluate<string>(`(async () => JSON.stringify([
    { ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state, window.name,
    await indexedDB.databases(), await caches.keys(),
  ]))()`);

test.each([
  ["an API key", () => key],
  ["an access token", () => signer.mint({ claims: { sub: "reader" } })],
])("%s is kept in memory alone, and asked for again after a reload", async (_what, credential) => {
  await open(closed.url);
  await field().waitFor();
  expect(await page().getByRole("alert").count()).toBe(0);
  const secret = credential();
  await give(secret);
  await runs("print('mine')");
  await expect.poll(() => output().textContent()).toBe("mine\n");
  expect(JSON.parse(await keptByBrowser())).toEqual([{}, {}, "", page().url(), null, "", [], []]);
  expect(page().url()).not.toContain(secret);
  expect(await page().content()).not.toContain(secret);
  await page().getByText("This request as code").click();
  await expect.poll(() => page().getByLabel("Request").textContent()).toContain("$SVC_TOKEN");
  await page().reload();
  await field().waitFor();
  expect(await field().inputValue()).toBe("");
});

test("a wrong key is told plainly, and a right one can be given at once", async () => {
  await open(closed.url);
  for (const wrong of [newApiKey(), expired]) {
    await give(wrong);
    await page().getByRole("alert").getByText("does not accept this key or token").waitFor();
    expect(await page().locator("main").textContent()).not.toContain(wrong);
  }
  await give("with a space");
  await page().getByRole("status").getByText("no spaces").waitFor();
  await give(` ${key} `);
  await runs("print(1)");
  expect(await page().getByRole("alert").count()).toBe(0);
});

test("a key that is revoked while the page is open is asked for again, and the program stays", async () => {
  const short = newApiKey();
  const others = [apiKeyRecord(key), apiKeyRecord(expired, { expires_at: "2026-11-25T00:00:00Z" })];
  keys.put([...others, apiKeyRecord(short)]);
  const statusFor = async () =>
    (await fetch(`${closed.url}/languages`, { headers: { "x-api-key": short } })).status;
  await until(async () => (await statusFor()) === 200, WAIT_MS);
  await open(closed.url);
  await give(short);
  await runs("print('kept')");
  keys.put(others);
  await until(async () => (await statusFor()) === 401, WAIT_MS);
  await button("Run (Ctrl+Enter)").click();
  await page().getByRole("alert").getByText("does not accept this key or token").waitFor();
  await give(key);
  await field().waitFor({ state: "detached" });
  expect(await page().getByRole("alert").count()).toBe(0);
  await button("Run (Ctrl+Enter)").click();
  await page().getByRole("status").getByText("Ended").waitFor();
  await expect.poll(() => output().textContent()).toBe("kept\n");
});

test("with a key that replaced another, files of before are downloaded, and dropped ones stored", async () => {
  const short = newApiKey();
  keys.put([apiKeyRecord(key), apiKeyRecord(short)]);
  const statusFor = async () =>
    (await fetch(`${closed.url}/languages`, { headers: { "x-api-key": short } })).status;
  await until(async () => (await statusFor()) === 200, WAIT_MS);
  await open(closed.url);
  await give(short);
  await button("Run (Ctrl+Enter)").waitFor();
  await drops(`new File(["x"], "given.txt")`);
  await button("Download given.txt").waitFor();
  await runs("open('made.txt', 'w').write('x')");
  keys.put([apiKeyRecord(key)]);
  await until(async () => (await statusFor()) === 401, WAIT_MS);
  await button("Run as job").click();
  await page().getByRole("alert").getByText("does not accept this key or token").waitFor();
  await give(key);
  await field().waitFor({ state: "detached" });
  for (const [list, name] of [
    ["Uploads", "given.txt"],
    ["Files of the run", "made.txt"],
  ] as const) {
    const [download] = await Promise.all([
      page().waitForEvent("download"),
      page()
        .getByLabel(list)
        .getByRole("button", { name: `Download ${name}` })
        .click(),
    ]);
    expect(download.suggestedFilename()).toBe(name);
  }
  await drops(`new File(["x"], "late.txt")`);
  await button("Download late.txt").waitFor();
  expect(await page().getByRole("alert").count()).toBe(0);
});

test("SVC_CONSOLE=false: there is no console, and / does not lead there", async () => {
  const without = await startSecondApi(sharedSystem(), { SVC_CONSOLE: "false" });
  try {
    const { origin } = new URL(without.url);
    const get = (path: string) =>
      fetch(`${origin}${path}`, { headers: { accept: "text/html" }, redirect: "manual" });
    expect((await get("/console")).status).toBe(404);
    expect((await get("/console/console.js")).status).toBe(404);
    const root = await get("/");
    expect(root.headers.get("location") ?? "").not.toContain("console");
    const followed = await fetch(`${origin}/`, { headers: { accept: "text/html" } });
    expect([followed.status, followed.headers.get("content-type")]).toEqual([
      200,
      expect.stringContaining("text/html"),
    ]);
  } finally {
    await without.stop();
  }
});
