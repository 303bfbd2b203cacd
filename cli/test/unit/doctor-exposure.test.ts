/** What ./svc doctor says of files that others can read, and of the address of the API. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { address, secretFiles } from "@svc/cli/doctor/exposure";
import { settings } from "@svc/cli/doctor/settings";
import { resolveInstance } from "@svc/cli/instance";
import { readSettings } from "@svc/cli/settings/sources";
import { afterEach, beforeEach, expect, test } from "vitest";

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "svc-exposure-"));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

test("a secret that others can read makes the machine unfit, with the command that closes it", () => {
  expect(secretFiles({ dataDir })).toMatchObject({ grade: "ok" });
  const file = join(dataDir, "secrets.env");
  writeFileSync(file, "");
  chmodSync(file, 0o600);
  expect(secretFiles({ dataDir })).toMatchObject({ grade: "ok" });
  chmodSync(file, 0o640);
  expect(secretFiles({ dataDir })).toMatchObject({ grade: "fail", fix: `chmod 600 ${file}` });
});

test("and the settings are told as a check of their own then, so that all other checks are made", async () => {
  const file = join(dataDir, "secrets.env");
  writeFileSync(file, "", { mode: 0o640 });
  const read = readSettings({ "data-dir": dataDir }, {});
  expect(await settings(resolveInstance({ "data-dir": dataDir }, {}), read)).toEqual([
    {
      grade: "fail",
      subject: "settings",
      note: `${file} can be read by others`,
      fix: `Run: chmod 600 ${file}`,
    },
  ]);
});

test.each([
  [undefined, "ok"],
  ["127.0.0.1", "ok"],
  ["::1", "ok"],
  ["0.0.0.0", "warn"],
  ["172.17.0.1", "warn"],
])("with SERVICE_HOST %s the address is told as %s", (SERVICE_HOST, grade) => {
  expect(address({ SERVICE_HOST })).toMatchObject({ subject: "address", grade });
});
