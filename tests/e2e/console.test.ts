/** The console in a browser, against the whole system: real runs, hostile output, much output, a narrow screen. */
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startChromium } from "./support/chromium.ts";

const shared = sharedSystem();
const signer = newSigner();
const LONG_MS = 60_000;
let browser: Browser;
let page: Page;
let second: SecondApi;
/** Requests to anything but the API, errors of scripts and violations of the policy. */
let wrong: string[] = [];

beforeAll(async () => {
  browser = await startChromium();
  second = await startSecondApi(shared, {
    LOCAL_MODE: "false",
    SVC_JWT_PUBLIC_KEY: signer.pem,
    SVC_JWT_KID: KID,
  });
});
afterAll(async () => {
  await browser?.close();
  await second?.stop();
});

beforeEach(async () => {
  wrong = [];
  page = await browser.newPage();
  page.setDefaultTimeout(LONG_MS);
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("dialog", (dialog) => {
    wrong.push(`dialog ${dialog.message()}`);
    dialog.dismiss().catch(() => undefined);
  });
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) wrong.push(message.text());
  });
  page.on("request", (request) => {
    const isOurs = [shared.url, second.url].some((url) => request.url().startsWith(new URL(url).origin));
    if (!isOurs && !/^(blob|data):/.test(request.url())) wrong.push(request.url());
  });
});
afterEach(async () => {
  await page.close();
  expect(wrong).toEqual([]);
});

const open = async (url = shared.url) => {
  await page.goto(new URL("/", url).href);
  expect(new URL(page.url()).pathname).toBe("/console");
};
const output = () => page.getByLabel("Output").locator("pre");
const status = () => page.getByRole("status");

async function start(code: string): Promise<void> {
  const editor = page.getByRole("textbox", { name: "Code" });
  await editor.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(code);
  await page.keyboard.press("Control+Enter");
}
async function runs(code: string): Promise<void> {
  await start(code);
  await status().getByText("Ended").waitFor();
}

describe("the console", () => {
  test("shows output while a program runs, and stops it", async () => {
    await open();
    await start("import time\nprint('first')\ntime.sleep(50)");
    await output().getByText("first").waitFor();
    expect(await status().textContent()).toBe("Running");
    await page.getByRole("button", { name: "Stop" }).click();
    await status().getByText("Stopped").waitFor();
  });

  test("shows an error and the exit code", async () => {
    await open();
    await runs("raise ValueError('wrong number')");
    expect(await output().textContent()).toContain("ValueError: wrong number");
    expect(await status().textContent()).toContain("exit code 1");
  });

  test("takes output and names of files as text", async () => {
    await open();
    const hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\u001b[31m";
    const name = "<img src=x onerror=alert(3)>.txt";
    await runs(`print(${JSON.stringify(hostile)})\nopen(${JSON.stringify(name)}, "w").write("x")`);
    expect(await output().textContent()).toBe(`${hostile}\n`);
    expect(await page.locator("main script, pre :not(span), li img").count()).toBe(0);
  });

  test("shows pictures and gives files", async () => {
    await open();
    await runs(
      "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('p.png')\nopen('a.txt', 'w').write('kept')",
    );
    const picture = page.getByRole("img", { name: "p.png" });
    await picture.waitFor();
    expect(await picture.evaluate((one: { naturalWidth: number }) => one.naturalWidth)).toBeGreaterThan(0);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download a.txt" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("a.txt");
  });

  test("gives a program the files that were added", async () => {
    await open();
    const file = { name: "in.txt", mimeType: "text/plain", buffer: Buffer.from("from outside") };
    await page.getByLabel("Add files").setInputFiles(file);
    await page.getByRole("button", { name: "Download in.txt" }).waitFor();
    await runs("print(open('in.txt').read())");
    expect(await output().textContent()).toBe("from outside\n");
  });

  test("fits a narrow screen", async () => {
    await page.setViewportSize({ width: 360, height: 640 });
    await open();
    await runs("print('x' * 5000)");
    const width = await page.locator("html").evaluate((one: { scrollWidth: number }) => one.scrollWidth);
    expect(width).toBeLessThanOrEqual(360);
  });

  test("asks for a credential and keeps it in memory alone", async () => {
    await open(second.url);
    await page.getByLabel("API key or access token").fill(signer.mint({ claims: { sub: "reader" } }));
    await page.getByRole("button", { name: "Continue" }).click();
    await runs("print('mine')");
    expect(await output().textContent()).toBe("mine\n");
    expect(await page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length")).toBe(
      0,
    );
    await page.reload();
    await page.getByLabel("API key or access token").waitFor();
  });
});
