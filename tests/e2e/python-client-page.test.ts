/** The Python part of docs/clients.md does what it says. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { readPage } from "@svc/test-kit/programs/page";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PYTHON, PYTHON_CLIENT } from "./support/python-client.ts";

const ADDRESS = "http://127.0.0.1:3112";
const [first, files, streamed, tools, watched, asynchronous, jobs, errors, ...others] = readPage(
  "docs/clients.md",
).blocks("python", "Python");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-python-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** asyncio in debug mode tells of a step that took more than 0.1 s, which says how busy the machine is. */
const SLOW = /^Executing <.*> took \d+\.\d+ seconds\n/gm;

/** In a folder of its own, against the system of the tests. */
async function run(block = ""): Promise<string> {
  expect(block).toContain(ADDRESS);
  const program = block.replaceAll(ADDRESS, new URL(sharedSystem().url).origin);
  const args = ["-B", "-X", "dev", "-W", "error", "-c", program];
  const env = { ...process.env, PYTHONPATH: PYTHON_CLIENT };
  const { stdout, stderr } = await promisify(execFile)(PYTHON, args, { cwd: folder, env });
  expect(stderr.replaceAll(SLOW, "")).toBe("");
  return stdout;
}

test("a first program", async () => {
  expect(await run(first)).toBe("42\n 0\n");
});

test("files go in and come out", async () => {
  expect(await run(files)).toBe("7 EUR\n\n");
  expect(readFileSync(join(folder, "plot.png")).subarray(1, 4).toString()).toBe("PNG");
});

test("output comes while the program runs", async () => {
  expect(await run(streamed)).toBe("0\n1\n2\n0\n");
});

test("a program calls functions", async () => {
  expect(await run(tools)).toBe("7.5\nno price for 'gold'\n\n");
});

test("a program that calls functions is watched", async () => {
  expect(await run(watched)).toBe("asking\nprice {'item': 'tea'}\n3.5\ncompleted\n");
});

test("the asynchronous client", async () => {
  const [squares, ...events] = (await run(asynchronous)).trimEnd().split("\n");
  expect(squares).toBe("['0', '1', '4', '9']");
  expect(events).toEqual(["started", "stdout", "result", "given up, and the program is ended"]);
});

test("a job", async () => {
  expect(await run(jobs)).toBe("done\ncompleted 0\n");
});

test("an error by its class", async () => {
  expect(await run(errors)).toMatch(/^unsupported_language 400 The language is not supported\. /);
});

test("every block is run", () => {
  expect(others).toEqual([]);
});
