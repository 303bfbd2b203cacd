import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { newSecret } from "@svc/test-kit/credentials/secrets";
import { expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { createLog, logWarnings } from "../../src/log.ts";

const logInto = (descriptor: number) =>
  createLog(
    "file-server",
    loadConfig("file-server", { SVC_INTERNAL_SERVICE_TOKEN: newSecret() }),
    descriptor,
  );

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
/** Bytes, without what is garbage. */
function heapInUse(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

it("a full disk costs lines, but neither throws nor keeps them all", async () => {
  const full = openSync("/dev/full", "w");
  const log = logInto(full);
  const before = heapInUse();
  for (let n = 0; n < 20_000; n++) log.info({ text: "x".repeat(1000) }, "line");
  await new Promise((resolve) => setImmediate(resolve));
  expect(heapInUse() - before).toBeLessThan(16 * 1024 * 1024);
  closeSync(full);
});

it("a warning of the process is a line of the log, with its place in the code", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-log-"));
  const file = openSync(join(folder, "log"), "w");
  const former = process.listeners("warning");
  logWarnings(logInto(file));
  try {
    process.emitWarning("careful", { type: "Custom", code: "C1" });
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.removeAllListeners("warning");
    for (const listener of former) process.on("warning", listener);
    closeSync(file);
  }
  const lines = readFileSync(join(folder, "log"), "utf8").trimEnd().split("\n");
  rmSync(folder, { recursive: true });
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    {
      level: 40,
      name: "file-server",
      msg: "careful",
      warning: "Custom",
      code: "C1",
      stack: expect.stringContaining("log.test.ts"),
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    },
  ]);
});

it.each([
  ["api", "LOG_LEVEL"],
  ["runner", "SANDBOX_LOG_LEVEL"],
  ["launcher", "SANDBOX_LOG_LEVEL"],
] as const)("the level of the %s is %s", (component, variable) => {
  const config = loadConfig("file-server", { SVC_INTERNAL_SERVICE_TOKEN: newSecret(), [variable]: "DEBUG" });
  expect(createLog(component, config).level).toBe("debug");
});
