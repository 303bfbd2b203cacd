import { closeSync, openSync } from "node:fs";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { createLog } from "../../src/log.ts";

it("a full disk costs lines, but neither throws nor keeps them all", async () => {
  const full = openSync("/dev/full", "w");
  const log = createLog(
    "file-server",
    loadConfig("file-server", { SVC_INTERNAL_SERVICE_TOKEN: newSecret() }),
    full,
  );
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < 20_000; n++) log.info({ text: "x".repeat(1000) }, "line");
  await new Promise((resolve) => setImmediate(resolve));
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(16 * 1024 * 1024);
  closeSync(full);
});
