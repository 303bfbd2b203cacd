/** The Python client's own tests that need no service (clients/python/tests/unit). */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const FOLDER = fileURLToPath(new URL("../../../../clients/python/", import.meta.url));
const DISCOVER = [
  "-B",
  "-X",
  "dev",
  "-W",
  "error",
  "-m",
  "unittest",
  "discover",
  "-s",
  "tests/unit",
  "-t",
  ".",
];

test("the unit tests of the Python client pass", async () => {
  const { stderr } = await promisify(execFile)("/usr/bin/python3", DISCOVER, { cwd: FOLDER });
  expect(stderr).toMatch(/^Ran \d{2,} tests in /m);
  expect(stderr).not.toMatch(/Exception ignored|Warning/);
});
