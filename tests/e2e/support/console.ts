/** The console in a browser, for the tests of a file: a new page for each, which must do nothing that the console must not. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { startChromium } from "./chromium.ts";

const LONG_MS = 60_000;

export interface ConsolePage {
  page: () => Page;
  /** Opens the console of the API at this address, by way of `/`. */
  open: (url: string) => Promise<void>;
  /** Runs a program without waiting for its end. */
  start: (code: string) => Promise<void>;
  /** Runs a program to its end. */
  runs: (code: string) => Promise<void>;
  /** Drops a file on the page, which the expression makes there. */
  drops: (file: string) => Promise<void>;
  output: () => ReturnType<Page["locator"]>;
  status: () => ReturnType<Page["locator"]>;
  button: (name: string) => ReturnType<Page["locator"]>;
}

/** `urls`: the only addresses that a page may ask. Scripts that fail or are forbidden, and dialogs, fail the test too. */
export function useConsole(urls: () => readonly string[]): ConsolePage {
  let browser: Browser;
  let page: Page;
  let wrong: string[] = [];
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(() => browser?.close());
  beforeEach(async () => {
    wrong = [];
    page = await browser.newPage();
    page.setDefaultTimeout(LONG_MS);
    watch(page, urls(), (what) => wrong.push(what));
  });
  afterEach(async () => {
    await page.close();
    expect(wrong).toEqual([]);
  });
  const status = () => page.getByRole("status").first();
  const start = async (code: string) => {
    await page.getByRole("textbox", { name: "Code" }).click();
    await page.keyboard.press("Control+a");
    await page.keyboard.insertText(code);
    await page.keyboard.press("Control+Enter");
  };
  return {
    page: () => page,
    open: async (url) => {
      await page.goto(new URL("/", url).href);
      expect(new URL(page.url()).pathname).toBe("/console");
    },
    start,
    runs: async (code) => {
      await start(code);
      await status().getByText("Ended").waitFor();
    },
    drops: (file) =>
      page.evaluate(`(() => {
        const transfer = new DataTransfer();
        transfer.items.add(${file});
        dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
      })()`),
    output: () => page.getByLabel("Output").locator("pre"),
    status,
    button: (name) => page.getByRole("button", { name, exact: true }),
  };
}

function watch(page: Page, urls: readonly string[], onWrong: (what: string) => void): void {
  page.on("pageerror", (error) => onWrong(String(error)));
  page.on("dialog", (dialog) => {
    onWrong(`dialog ${dialog.message()}`);
    dialog.dismiss().catch(() => undefined);
  });
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) onWrong(message.text());
  });
  page.on("request", (request) => {
    const isOurs = urls.some((url) => request.url().startsWith(new URL(url).origin));
    if (!isOurs && !/^(blob|data):/.test(request.url())) onWrong(request.url());
  });
}
