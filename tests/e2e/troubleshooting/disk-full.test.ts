/** docs/troubleshooting.md, "Disk full": a data folder on a small file system is filled, and everything goes on when there is space again. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmdirSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Answer, Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { until } from "@svc/test-kit/system/processes";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectToHeal } from "../support/faults.ts";

const SIZE = "192m";
/** The layers of deadlines around a run: a request that is accepted just when the disk becomes full ends with them. */
const DEADLINES = {
  JOB_TIMEOUT: "5000",
  SANDBOX_RUN_TIMEOUT: "5000",
  SANDBOX_COMPILE_TIMEOUT: "1000",
  JOB_QUEUE_WAIT_MS: "5000",
  JOB_PRIME_ALLOWANCE_MS: "5000",
  JOB_POSTPROCESS_ALLOWANCE_MS: "5000",
  JOB_WAIT_GRACE_MS: "1000",
};
const NOTICED_MS = 90_000;
const PIECE = Buffer.alloc(4096);

let folder: string;
let system: System | undefined;

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-full-")));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${SIZE}`, "full", folder]);
  chmodSync(folder, 0o711);
});
afterAll(async () => {
  const left = await system?.stop();
  execFileSync("umount", [folder]);
  rmdirSync(folder);
  expect(left).toEqual([]);
});

/** Writes until nothing more fits. */
function fill(path: string): void {
  const file = openSync(path, "w");
  try {
    for (;;) writeSync(file, PIECE);
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
  } finally {
    closeSync(file);
  }
}

test("requests are refused as the page says, the service is not ready, and nothing that was answered is lost", async () => {
  system = await startSystem({ env: { ...OPEN_LIMITS, ...DEADLINES, SVC_DATA_DIR: folder } });
  const api = new Api(system.url);
  const kept = await api.stage("kept.txt", "kept");
  const filler = join(folder, "filler");
  fill(filler);
  let answer: Answer | undefined;
  const isRefused = async () => {
    answer = await api.tryExec({ lang: "bash", code: "echo hello" });
    return answer.status === 503 && answer.refusal.error === "store_unavailable";
  };
  await until(isRefused, NOTICED_MS, () => answer?.text);
  await expect.poll(async () => (await api.send("GET", "/ready")).status).toBe(503);
  rmSync(filler);
  await expectToHeal(system);
  expect((await api.bytes(kept)).toString()).toBe("kept");
  await expect.poll(async () => (await api.send("GET", "/ready")).status).toBe(200);
});
