/** Every block of commands in README.md does what the page says, in the order of the page. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "@svc/cli/instance";
import { readPage } from "@svc/test-kit/programs/page";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, beforeAll, expect, test } from "vitest";

const { blocks } = readPage("README.md");
const ADDRESS = "http://127.0.0.1:3112";
const PNG = [0x89, 0x50, 0x4e, 0x47];
const [install, hello, small, large, ...others] = blocks("sh");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-readme-"));
  symlinkSync(join(ROOT, "cli"), join(folder, "cli"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** In a folder of its own, against the system of the tests. */
async function run(block = ""): Promise<string> {
  const { origin } = new URL(sharedSystem().url);
  const script = block
    .replaceAll("./svc exec", `${ROOT}/svc exec --url ${origin}`)
    .replaceAll(ADDRESS, origin);
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], { cwd: folder });
  return stdout;
}

test("there are four blocks of commands, and the first is the installation", () => {
  expect(install).toBe("git clone <this repository> svc && cd svc\n./svc up -d\n");
  expect(others).toEqual([]);
});

test("the first requests print 42, and the answer has the fields that the page shows", async () => {
  const [printed, answer] = (await run(hello)).trim().split("\n");
  expect(printed).toBe("42");
  const shown = JSON.parse(blocks("json")[0] ?? "") as Record<string, unknown>;
  const got = JSON.parse(answer ?? "") as Record<string, unknown>;
  expect(Object.keys(got)).toEqual(Object.keys(shown));
  expect(got).toMatchObject({ stdout: "42\n", limits: shown.limits });
});

test("a small file and a variable are in the request, and a new file comes back", async () => {
  const answer = JSON.parse(await run(small)) as { stdout: string; files: { name: string; size: number }[] };
  expect(answer).toMatchObject({ stdout: "THREE km\n", files: [{ name: "out.txt", size: 4 }] });
});

test("a CSV is uploaded, a table printed, and a plot downloaded", async () => {
  expect(await run(large)).toMatch(/^product +Cocoa +Coffee +Tea\n/);
  expect([...readFileSync(join(folder, "plot.png")).subarray(0, 4)]).toEqual(PNG);
});
