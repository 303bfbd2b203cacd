/** The console in a browser, against the whole system: real runs, hostile output, much output, a narrow screen. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startChromium } from "./support/chromium.ts";

const execute = promisify(execFile);
const shared = sharedSystem();
const signer = newSigner();
const LONG_MS = 60_000;

/** What axe-core says of a page. */
interface Checked {
  violations: { id: string; impact: string; nodes: { failureSummary: string }[] }[];
}

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
const status = () => page.getByRole("status").first();

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
  test.each(["GET", "HEAD"])("%s / leads a browser to it", async (method) => {
    const headers = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
    const answer = await fetch(new URL("/", shared.url), { method, headers, redirect: "manual" });
    const told = ["location", "vary"].map((name) => answer.headers.get(name));
    expect([answer.status, ...told]).toEqual([302, "/console", "accept"]);
  });

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

  test.runIf(process.env.CONSOLE_SCREENSHOT)("is pictured for its document", async () => {
    await page.setViewportSize({ width: 1000, height: 1000 });
    await open();
    await runs(
      "import matplotlib.pyplot as plt\n\nplt.figure(figsize=(4, 2.2))\nplt.plot([1, 4, 9, 16, 25], 'o-')\nplt.title('Squares')\nplt.savefig('squares.png')\nprint('done')",
    );
    await page.getByRole("img", { name: "squares.png" }).waitFor();
    await page.screenshot({ path: process.env.CONSOLE_SCREENSHOT ?? "", fullPage: true });
  });

  test("gives a program the files that were added", async () => {
    await open();
    const file = { name: "in.txt", mimeType: "text/plain", buffer: Buffer.from("from outside") };
    await page.getByLabel("Add files").setInputFiles(file);
    await page.getByRole("button", { name: "Download in.txt" }).waitFor();
    await runs("print(open('in.txt').read())");
    expect(await output().textContent()).toBe("from outside\n");
  });

  test("takes files that are dropped on it", async () => {
    await open();
    await page.getByRole("button", { name: "Run (Ctrl+Enter)" }).waitFor();
    await page.evaluate(`(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(["dropped"], "drop.txt"));
      dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
    })()`);
    await page.getByRole("button", { name: "Download drop.txt" }).waitFor();
    await runs("print(open('drop.txt').read())");
    expect(await output().textContent()).toBe("dropped\n");
  });

  test("shows rows as a table, where the time went, and the limits", async () => {
    await open();
    await runs(
      "open('rows.csv', 'w').write('name,size\\n\"<b>a</b>\",1\\n')\nimport json\njson.dump([{'x': 1}], open('r.json', 'w'))",
    );
    const table = page.getByLabel("Table rows.csv");
    await table.waitFor();
    expect(await table.locator("th, td").allTextContents()).toEqual(["name", "size", "<b>a</b>", "1"]);
    expect(await page.getByLabel("Table r.json").locator("th, td").allTextContents()).toEqual(["x", "1"]);
    const facts = page.getByLabel("Facts");
    expect(await facts.locator("th").allTextContents()).toEqual([
      "waiting",
      "preparing",
      "running",
      "collecting files",
    ]);
    expect(await facts.textContent()).toContain("of 512 MiB. Time limit: 60 s.");
  });

  test("gives the request as code that does the same", async () => {
    await open();
    const program = `print("it's", 6 * 7)`;
    await runs(program);
    await page.getByText("This request as code").click();
    const code = page.getByLabel("Request").locator("pre");
    const { stdout } = await execute("bash", ["-c", (await code.textContent()) ?? ""]);
    expect(JSON.parse(stdout).stdout).toBe("it's 42\n");
    await page.getByLabel("Form").selectOption("Python");
    const clients = fileURLToPath(new URL("../../clients/python", import.meta.url));
    const python = await execute("/usr/bin/python3", ["-c", (await code.textContent()) ?? ""], {
      env: { PYTHONPATH: clients },
    });
    expect(python.stdout).toBe("it's 42\n\n");
    await page.getByLabel("Form").selectOption("TypeScript");
    expect(await code.textContent()).toContain(JSON.stringify(program));
  });

  test("runs a program as a job, shows it, and removes it", async () => {
    await open();
    await page.getByLabel("Language").selectOption("bash");
    await page.getByRole("button", { name: "Run as job" }).click();
    await status().getByText("was made").waitFor();
    await page.getByText("Jobs", { exact: true }).click();
    const job = page.getByRole("list", { name: "Jobs" }).getByRole("listitem").first();
    await job.getByRole("button", { name: "Show" }).click();
    await status().getByText("Ended").waitFor();
    expect(await output().textContent()).toBe("line 1\nline 2\nline 3\n");
    await page.getByRole("button", { name: "Refresh" }).click();
    await job.getByRole("button", { name: "Remove" }).click();
  });

  test.each(["light", "dark"] as const)(
    "has names and contrast for everybody, in %s",
    async (colorScheme) => {
      await page.emulateMedia({ colorScheme });
      await open();
      await runs("import sys; print(1); print(2, file=sys.stderr); open('a.csv', 'w').write('x\\n1\\n')");
      await page.getByLabel("Table a.csv").waitFor();
      await page.evaluate(axe.source);
      const { violations } = (await page.evaluate("axe.run()")) as Checked;
      const found = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
      expect(
        found.flatMap(({ id, nodes }) => nodes.map(({ failureSummary }) => [id, failureSummary])),
      ).toEqual([]);
    },
  );

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
