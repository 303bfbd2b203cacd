import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { runVitest } from "@svc/tools/testing/suites";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-reporter-"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "vitest.config.ts"), 'export default { test: { name: "unit" } };');
  vi.spyOn(console, "log").mockReturnValue();
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** What a run of these test files comes to; each is a module whose `test` and `expect` are vitest's. */
async function outcomeOf(files: Readonly<Record<string, string>>) {
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(folder, name), `import { afterAll, describe, expect, test } from "vitest";\n${text}`);
  const args = [`--root=${folder}`, "--retry=1"];
  const { passed, failed, failures, flaky } = await runVitest("unit", args, join(folder, "report.json"), {
    aside: true,
  });
  const firstLines = (texts: readonly string[]) =>
    texts.map((text) => text.split("\n", 2).map((line) => line.replace(/^\S*\//, "")));
  return { passed, failed, failures: firstLines(failures), flaky: firstLines(flaky), texts: flaky };
}

const REJECTS_LATER = "setTimeout(() => Promise.reject(new Error('left')), 10);";
const WAITS = "await new Promise((resolve) => setTimeout(resolve, 200));";

test("tests that fail, files that fail as a whole, and tests that passed when repeated are told", async () => {
  const { passed, failed, failures, flaky } = await outcomeOf({
    "a.test.ts": `
      describe("it", () => {
        test("is good", () => {});
        let attempts = 0;
        test("fails once", () => { if (attempts++ === 0) throw new Error("too late"); });
        test("fails twice", () => { throw new Error("always"); });
      });`,
    "b.test.ts": 'import "./none.ts"; test("is not run", () => {});',
    "c.test.ts": 'afterAll(() => { throw new Error("at the end"); }); test("is good", () => {});',
  });
  expect({ passed, failed }).toEqual({ passed: 3, failed: 3 });
  expect(failures.toSorted()).toEqual([
    ["a.test.ts > it > fails twice", "  Error: always"],
    ["b.test.ts", expect.stringContaining("./none.ts")],
    ["c.test.ts", "  Error: at the end"],
  ]);
  expect(flaky).toEqual([["a.test.ts > it > fails once", "  Error: too late"]]);
});

test("an error that nobody handles is a failure that names its test", async () => {
  const { passed, failures, flaky } = await outcomeOf({
    "a.test.ts": `test("leaves an error", async () => { ${REJECTS_LATER} ${WAITS} });`,
  });
  expect({ passed, flaky }).toEqual({ passed: 1, flaky: [] });
  expect(failures).toEqual([
    ['a.test.ts > an unhandled error during or after "leaves an error"', "  Error: left"],
  ]);
});

test("what a failed attempt leaves behind is told with its test, which passed when it was repeated", async () => {
  const { failed, texts } = await outcomeOf({
    "a.test.ts": `
      let attempts = 0;
      test("fails once", async () => {
        if (attempts++ > 0) return void (${WAITS.replace(";", "")});
        ${REJECTS_LATER}
        throw new Error("too late");
      });`,
  });
  expect(failed).toBe(0);
  expect(texts).toEqual([expect.stringMatching(/> fails once\n {2}Error: too late.*\n {2}Error: left/s)]);
});

test("a run that ends early, or finds no test, is a failure", async () => {
  const { failures } = await outcomeOf({});
  expect(failures).toEqual([["tests (unit): exit code 1, see its output above"]]);
});
