/** The console of a system that lets programs write much and keeps sessions. */
import { slow } from "@svc/test-kit/jail/slowness";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useConsole } from "./support/console.ts";

const MIB = 2 ** 20;
/** Characters that the page shows. */
const SHOWN = 200_000;
/** An answer of the page to a click or a key, on a machine that does other work. */
const ANSWER_MS = slow(1500);
const MAX_NODES = 5000;

let system: System;
beforeAll(async () => {
  system = await startSystem({
    env: { SVC_PERSIST_SESSIONS: "true", SANDBOX_OUTPUT_MAX_SIZE: String(4 * MIB) },
  });
});
afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

const { page, open, start, runs, output, status, button } = useConsole(() => [system.url]);

const nodes = () =>
  page().evaluate<number>(`(() => {
    const walker = document.createTreeWalker(document.querySelector("main"));
    let count = 0;
    while (walker.nextNode()) count++;
    return count;
  })()`);

/** Milliseconds until the page has done something and painted. */
async function timeOf(action: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await action();
  await page().evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))");
  return performance.now() - began;
}

const WRITES = {
  "one line": "import sys\nsys.stdout.write('x' * 2_000_000)",
  "40,000 lines": "for n in range(40_000): print(f'{n:049}')",
  "both outputs by turns": `import os
for n in range(2000): os.write(1, b'o' * 500); os.write(2, b'e' * 500)`,
};

describe.each(Object.entries(WRITES))("2 MB in %s", (_how, code) => {
  test("leave the page usable, and all of it can be downloaded", async () => {
    await open(system.url);
    await runs(code);
    const shown = (await output().textContent())?.length ?? 0;
    expect(shown).toBeLessThanOrEqual(SHOWN);
    await page()
      .getByText(`Only the first ${shown.toLocaleString("en")} characters are shown of 2,000,000.`)
      .waitFor();
    expect(await nodes()).toBeLessThan(MAX_NODES);
    const [download] = await Promise.all([
      page().waitForEvent("download"),
      button("Download the whole").click(),
    ]);
    const chunks: Buffer[] = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).length).toBe(2_000_000);
    expect(await timeOf(() => button("Clear").click())).toBeLessThan(ANSWER_MS);
    await expect.poll(() => output().textContent()).toBe("");
    expect(await button("Download the whole").count()).toBe(0);
    await runs("print('next')");
    await expect.poll(() => output().textContent()).toBe("next\n");
  });

  test("can be stopped", async () => {
    await open(system.url);
    await start(`${code}\nimport sys, time; sys.stdout.flush(); time.sleep(50)`);
    await page().getByText("Only the first").waitFor();
    expect(await timeOf(() => button("Stop").click())).toBeLessThan(ANSWER_MS);
    await status().getByText("Stopped").waitFor();
    await page()
      .getByText(/Only the first [\d,]+ characters are shown of [\d,]+\./)
      .waitFor();
  });
});

test("output beyond the limit of the service is said to be cut, with a number", async () => {
  await open(system.url);
  await runs("import sys\nsys.stdout.write('x' * 5_000_000)");
  await expect
    .poll(() => status().textContent())
    .toBe(
      `Ended: OL, stdout length exceeded; its first ${(4 * MIB).toLocaleString("en")} characters are kept`,
    );
});

describe("a session", () => {
  test("continues between two runs, is listed, and can be deleted", async () => {
    await open(system.url);
    const name = page().getByLabel("Session", { exact: true });
    await name.fill("notebook");
    await runs("kept = 6 * 7\nopen('note.txt', 'w').write('kept too')");
    await runs("print(kept, open('note.txt').read())");
    await expect.poll(() => output().textContent()).toBe("42 kept too\n");
    await name.fill("other");
    await runs("print('kept' in globals())");
    await expect.poll(() => output().textContent()).toBe("False\n");
    await page().getByText("Sessions", { exact: true }).click();
    const listed = page()
      .getByRole("list", { name: "Sessions" })
      .getByRole("listitem")
      .filter({ hasNotText: "(default)" });
    await expect.poll(() => listed.count()).toBe(2);
    const notebook = listed.filter({ hasText: "notebook" });
    await notebook.getByRole("button", { name: "Continue" }).click();
    expect(await name.inputValue()).toBe("notebook");
    await runs("print(kept)");
    await expect.poll(() => output().textContent()).toBe("42\n");
    await notebook.getByRole("button", { name: "Delete" }).click();
    await expect.poll(() => listed.count()).toBe(1);
    await runs("print('kept' in globals())");
    await expect.poll(() => output().textContent()).toBe("False\n");
  });

  test("with a name that no session may have is an error in words", async () => {
    await open(system.url);
    await page().getByLabel("Session", { exact: true }).fill("<img src=x onerror=alert(1)>".repeat(20));
    await start("print(1)");
    await status().getByText("Error").waitFor();
    expect(await page().locator("main img").count()).toBe(0);
  });
});
