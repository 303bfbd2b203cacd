/** ./svc up that is interrupted before it is ready, and whose messages nobody reads. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { readState } from "@svc/cli/supervisor/state";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type PrivateFolder, privateFolder, svc } from "./support/svc.ts";

let folder: PrivateFolder;
beforeEach(async () => {
  folder = await privateFolder();
});
afterEach(async () => {
  await svc(["down"], folder.environment);
  folder.remove();
});

function start(args: readonly string[], more: Readonly<Record<string, string>> = {}) {
  const env = { ...process.env, ...folder.environment, ...more };
  const child = spawn(join(ROOT, "svc"), ["up", "--no-example", ...args], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      said += text;
    });
  return { child, ended: once(child, "close").then(([code]) => code as number), said: () => said };
}

/** Nothing listens there, so nothing ever gets ready. */
const NEVER_READY = { REDIS_URL: "redis://127.0.0.1:1", SVC_READY_TIMEOUT: "600" };

/** Left in the run folder by a copy that was not ended in order. */
const leftovers = () => readdirSync(folder.instance.runDir).filter((name) => /\.(json|pid|sock)$/.test(name));

it.each([
  ["in the background", ["-d"], "error: interrupted: it was ended before it was ready\n"],
  ["in the foreground", [], "\nEnding everything …\n"],
])("a start %s ends with its Ctrl-C, and leaves nothing behind", async (_where, args, text) => {
  const up = start(args, NEVER_READY);
  await expect.poll(() => readState(folder.instance.runDir), { timeout: 30_000 }).toBeDefined();
  const restart = await svc(["restart"], folder.environment);
  expect(restart.stderr).toContain("error: the copy is starting\nWait until ./svc status says ready.\n");
  up.child.kill("SIGINT");
  expect(await up.ended).toBe(130);
  expect(up.said()).toContain(text);
  expect((await svc(["status"], folder.environment)).code).toBe(3);
  expect(leftovers()).toEqual([]);
});

it("a start in the background whose supervisor is killed says so, and leaves nothing behind", async () => {
  const up = start(["-d"], NEVER_READY);
  await expect.poll(() => readState(folder.instance.runDir)).toBeDefined();
  process.kill(readState(folder.instance.runDir)?.supervisor.pid ?? Number.NaN, "SIGKILL");
  expect(await up.ended).toBe(1);
  expect(up.said()).toContain("error: the supervisor ended (SIGKILL)\n");
  expect((await svc(["status"], folder.environment)).code).toBe(3);
});

it("a copy in the foreground outlives the reader of its messages, and ends in order", async () => {
  const up = start([]);
  up.child.stdout.destroy();
  up.child.stderr.destroy();
  await expect.poll(async () => (await svc(["status"], folder.environment)).code).toBe(0);
  const { stdout } = await svc(["exec", "-c", "print(6*7)"], folder.environment);
  expect(stdout).toBe("42\n");
  up.child.kill("SIGINT");
  expect(await up.ended).toBe(130);
  expect(leftovers()).toEqual([]);
});
