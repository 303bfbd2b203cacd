/** Which settings a command finds changed since the copy was started. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { keepStartedSettings, settingsSinceStart } from "../../src/settings/started.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-started-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("names what has another value now, and not the token of a command, which no component reads", () => {
  keepStartedSettings(folder, { MAX_REQUESTS: "1", LOG_LEVEL: "info" });
  expect(settingsSinceStart(folder, { MAX_REQUESTS: "2", LOG_LEVEL: "info", SVC_TOKEN: "t" })).toEqual([
    "MAX_REQUESTS",
  ]);
});
