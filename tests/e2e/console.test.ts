/** The console in a browser, against the whole system: real runs, hostile output, keyboard, a narrow screen. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { sharedSystem } from "@svc/test-kit/system/shared";
import axe from "axe-core";
import { describe, expect, test } from "vitest";
import { useConsole } from "./support/console.ts";

const execute = promisify(execFile);
const shared = sharedSystem();

/** What axe-core says of a page. */
interface Checked {
  violations: { id: string; impact: string; nodes: { failureSummary: string }[] }[];
}

const { page, open: openAt, start, runs, drops, output, status, button } = useConsole(() => [shared.url]);
const open = () => openAt(shared.url);

/** Writes to both outputs, and leaves files whose names or contents are markup. */
const HOSTILE = `import json, sys, time
print(OUTPUT, flush=True)
time.sleep(0.1)
sys.stderr.write(OUTPUT)
svg = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="30" onload="alert(4)"><script>alert(4)</script></svg>'
for name, content in {
    "<img src=x onerror=alert(3)>.txt": "x",
    '"onload="alert(5).svg': svg,
    "page.html": "<script>alert(6)</script>",
    "javascript:alert(7)": "x",
    "t.csv": '<img src=x onerror=alert(8)>,b\\n1,<script>alert(8)</script>\\n',
    "t.json": json.dumps([{"<img src=x onerror=alert(8)>": "<svg onload=alert(9)>"}]),
}.items():
    open(name, "w").write(content)
`;

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
    await expect.poll(() => status().textContent()).toBe("Running");
    await button("Stop").click();
    await status().getByText("Stopped").waitFor();
  });

  test("shows an error and the exit code", async () => {
    await open();
    await runs("raise ValueError('wrong number')");
    await expect.poll(() => output().textContent()).toContain("ValueError: wrong number");
    await expect.poll(() => status().textContent()).toContain("exit code 1");
  });

  test("takes output, errors, names and contents of files as text and pictures alone", async () => {
    await open();
    const hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\u001b[31m";
    await runs(HOSTILE.replaceAll("OUTPUT", JSON.stringify(hostile)));
    await expect.poll(() => output().textContent()).toBe(`${hostile}\n${hostile}`);
    const picture = page().getByRole("img", { name: '"onload="alert(5).svg' });
    await picture.waitFor();
    await expect.poll(() => picture.evaluate((one: { naturalWidth: number }) => one.naturalWidth)).toBe(30);
    await page().getByLabel("Table t.csv").waitFor();
    await expect
      .poll(() => page().getByLabel("Table t.json").locator("th, td").allTextContents())
      .toEqual(["<img src=x onerror=alert(8)>", "<svg onload=alert(9)>"]);
    await expect.poll(() => page().getByRole("button", { name: "Download" }).count()).toBe(6);
    expect(
      await page().locator("main script, main iframe, pre :not(span), [onerror], [onload]").count(),
    ).toBe(0);
    // Only the one picture, beside those with which the editor separates characters without a shape.
    expect(await page().locator("main img:not(.cm-widgetBuffer), main object, main embed").count()).toBe(1);
  });

  test("takes what is uploaded and typed, and the errors about it, as text", async () => {
    await open();
    const file = {
      name: "<img src=x onerror=alert(1)>.txt",
      mimeType: "text/html",
      buffer: Buffer.from("x"),
    };
    await page().getByLabel("Add files").setInputFiles(file);
    await page()
      .getByRole("button", { name: `Download ${file.name}` })
      .waitFor();
    const code = "echo '</pre><script>alert(2)</script>'; cat *.txt";
    await page().getByLabel("Language").selectOption("bash");
    await runs(code);
    await expect.poll(() => output().textContent()).toBe("</pre><script>alert(2)</script>\nx");
    await page().getByText("This request as code").click();
    await expect
      .poll(() => page().getByLabel("Request").locator("pre").textContent())
      .toContain("<script>alert(2)");
    // Larger than a file may be: the error has its name.
    await drops(`new File([new Uint8Array(26 * 2 ** 20)], ${JSON.stringify(file.name)})`);
    await status().getByText("Error").waitFor();
    expect(await page().locator("main img, main script").count()).toBe(0);
  });

  test("shows pictures and gives files", async () => {
    await open();
    await runs(
      "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('p.png')\nopen('a.txt', 'w').write('kept')",
    );
    const picture = page().getByRole("img", { name: "p.png" });
    await picture.waitFor();
    await expect
      .poll(() => picture.evaluate((one: { naturalWidth: number }) => one.naturalWidth))
      .toBeGreaterThan(0);
    const [download] = await Promise.all([
      page().waitForEvent("download"),
      page().getByRole("button", { name: "Download a.txt" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("a.txt");
  });

  test.runIf(process.env.CONSOLE_SCREENSHOT)("is pictured for its document", async () => {
    await page().setViewportSize({ width: 1000, height: 1000 });
    await open();
    await runs(
      "import matplotlib.pyplot as plt\n\nplt.figure(figsize=(4, 2.2))\nplt.plot([1, 4, 9, 16, 25], 'o-')\nplt.title('Squares')\nplt.savefig('squares.png')\nprint('done')",
    );
    await page().getByRole("img", { name: "squares.png" }).waitFor();
    await page().screenshot({ path: process.env.CONSOLE_SCREENSHOT ?? "", fullPage: true });
  });

  test("gives a program the files that were added", async () => {
    await open();
    const file = { name: "in.txt", mimeType: "text/plain", buffer: Buffer.from("from outside") };
    await page().getByLabel("Add files").setInputFiles(file);
    await page().getByRole("button", { name: "Download in.txt" }).waitFor();
    await runs("print(open('in.txt').read())");
    await expect.poll(() => output().textContent()).toBe("from outside\n");
  });

  test("takes files that are dropped on it", async () => {
    await open();
    await page().getByRole("button", { name: "Run (Ctrl+Enter)" }).waitFor();
    await drops(`new File(["dropped"], "drop.txt")`);
    await page().getByRole("button", { name: "Download drop.txt" }).waitFor();
    await runs("print(open('drop.txt').read())");
    await expect.poll(() => output().textContent()).toBe("dropped\n");
  });

  test("shows rows as a table, where the time went, and the limits", async () => {
    await open();
    await runs(
      "open('rows.csv', 'w').write('name,size\\n\"<b>a</b>\",1\\n')\nimport json\njson.dump([{'x': 1}], open('r.json', 'w'))",
    );
    const table = page().getByLabel("Table rows.csv");
    await table.waitFor();
    await expect
      .poll(() => table.locator("th, td").allTextContents())
      .toEqual(["name", "size", "<b>a</b>", "1"]);
    await expect
      .poll(() => page().getByLabel("Table r.json").locator("th, td").allTextContents())
      .toEqual(["x", "1"]);
    const facts = page().getByLabel("Facts");
    await expect
      .poll(() => facts.locator("th").allTextContents())
      .toEqual(["waiting", "preparing", "running", "collecting files"]);
    await expect.poll(() => facts.textContent()).toContain("of 512 MiB. Time limit: 60 s.");
  });

  test("gives the request as code that does the same", async () => {
    await open();
    const program = `print("it's", 6 * 7)`;
    await runs(program);
    await page().getByText("This request as code").click();
    const code = page().getByLabel("Request").locator("pre");
    const shown = async (word: string) => {
      await expect.poll(() => code.textContent()).toContain(word);
      return (await code.textContent()) ?? "";
    };
    const { stdout } = await execute("bash", ["-c", await shown("curl")]);
    expect(JSON.parse(stdout).stdout).toBe("it's 42\n");
    await page().getByLabel("Form").selectOption("Python");
    const clients = fileURLToPath(new URL("../../clients/python", import.meta.url));
    const python = await execute("/usr/bin/python3", ["-c", await shown("import")], {
      env: { PYTHONPATH: clients },
    });
    expect(python.stdout).toBe("it's 42\n\n");
    await page().getByLabel("Form").selectOption("TypeScript");
    await expect.poll(() => code.textContent()).toContain(JSON.stringify(program));
  });

  test("runs a program as a job, shows it, and removes it", async () => {
    await open();
    await page().getByLabel("Language").selectOption("bash");
    await page().getByRole("button", { name: "Run as job" }).click();
    await status().getByText("was made").waitFor();
    await page().getByText("Jobs", { exact: true }).click();
    const job = page().getByRole("list", { name: "Jobs" }).getByRole("listitem").first();
    await job.getByRole("button", { name: "Show" }).click();
    await status().getByText("Ended").waitFor();
    await expect.poll(() => output().textContent()).toBe("line 1\nline 2\nline 3\n");
    await page().getByRole("button", { name: "Refresh" }).click();
    await job.getByRole("button", { name: "Remove" }).click();
  });

  test("shows an example of each language that is installed, which runs", async () => {
    await open();
    const options = page().getByLabel("Language").locator("option");
    await expect.poll(() => options.count()).toBeGreaterThanOrEqual(5);
    const languages = await options.allTextContents();
    for (const language of languages) {
      await page().getByLabel("Language").selectOption(language);
      await expect.poll(() => page().getByRole("textbox", { name: "Code" }).textContent()).not.toBe("");
      await button("Run (Ctrl+Enter)").click();
      await status().getByText("Ended with exit code 0").waitFor();
      await expect.poll(async () => (await output().textContent())?.length).toBeGreaterThan(5);
    }
  });

  test.each(["light", "dark"] as const)(
    "has names and contrast for everybody, in %s",
    async (colorScheme) => {
      await page().emulateMedia({ colorScheme });
      await open();
      await runs("import sys; print(1); print(2, file=sys.stderr); open('a.csv', 'w').write('x\\n1\\n')");
      await page().getByLabel("Table a.csv").waitFor();
      await page().evaluate(axe.source);
      const { violations } = (await page().evaluate("axe.run()")) as Checked;
      const found = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
      expect(
        found.flatMap(({ id, nodes }) => nodes.map(({ failureSummary }) => [id, failureSummary])),
      ).toEqual([]);
    },
  );

  test("fits a narrow screen", async () => {
    await page().setViewportSize({ width: 360, height: 640 });
    await open();
    const columns = Array.from({ length: 30 }, (_, at) => `column ${at}`).join(",");
    await runs(
      `print('x' * 5000)\nopen('${"n".repeat(100)}.txt', 'w')\nopen('t.csv', 'w').write('${columns}')`,
    );
    await page().getByLabel("Table t.csv").waitFor();
    for (const title of ["This request as code", "Jobs"])
      await page().getByText(title, { exact: true }).click();
    const html = page().locator("html");
    expect(await html.evaluate((one: { scrollWidth: number }) => one.scrollWidth)).toBeLessThanOrEqual(360);
  });

  test("is used by keyboard alone, in the order of the page", async () => {
    await open();
    await button("Run (Ctrl+Enter)").waitFor();
    const order: string[] = [];
    for (;;) {
      await page().keyboard.press("Tab");
      const name = await focusedName();
      if (name === "" || order.includes(name)) break;
      order.push(name);
    }
    expect(order).toEqual([
      "Language",
      "Run (Ctrl+Enter)",
      "Clear",
      "Run as job",
      "Add files (or drop them here)",
      "Code",
      "Output",
      "This request as code",
      "Jobs",
    ]);
    await page().reload();
    await button("Run (Ctrl+Enter)").waitFor();
    await tabTo("Language");
    await page().keyboard.type("bash");
    await page().keyboard.press("Tab");
    await page().keyboard.press("Enter");
    await status().getByText("Ended").waitFor();
    await expect.poll(() => output().textContent()).toBe("line 1\nline 2\nline 3\n");
    await tabTo("Code");
    await page().keyboard.press("Control+a");
    await page().keyboard.insertText("echo waits; sleep 50");
    await page().keyboard.press("Control+Enter");
    await output().getByText("waits").waitFor();
    await page().keyboard.press("Shift+Tab");
    await tabTo("Stop", "Shift+Tab");
    await page().keyboard.press("Space");
    await status().getByText("Stopped").waitFor();
  });
});

/** The visible name of what has the focus; empty for the page itself. */
function focusedName(): Promise<string> {
  return page().evaluate<string>(`(() => {
    let one = document.activeElement;
    while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    if (one === null || one === document.body) return "";
    const label = one.labels?.[0]?.firstChild?.textContent ?? one.closest("[aria-label]")?.ariaLabel;
    return (label ?? one.textContent).trim();
  })()`);
}

async function tabTo(name: string, key = "Tab"): Promise<void> {
  for (let pressed = 0; pressed < 20; pressed++) {
    if ((await focusedName()) === name) return;
    await page().keyboard.press(key);
  }
  throw new Error(`${name} is not reached by ${key}`);
}
