/** ./svc up that is interrupted before it is ready, and whose messages nobody reads. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { readState } from "@svc/cli/supervisor/state";
import { runsIn } from "@svc/cli/topology";
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

it("a start in the background that is interrupted as its supervisor begins ends it, too", async () => {
  const supervisors = () => {
    const { stdout } = spawnSync("pgrep", ["-f", `supervise --data-dir ${folder.instance.dataDir}`]);
    return String(stdout).split("\n").filter(Boolean).map(Number);
  };
  const up = start(["-d"], NEVER_READY);
  await expect.poll(supervisors, { interval: 5 }).toHaveLength(1);
  const [supervisor = Number.NaN] = supervisors();
  process.kill(supervisor, "SIGSTOP");
  up.child.kill("SIGINT");
  expect(await up.ended).toBe(130);
  if (supervisors().length > 0) process.kill(supervisor, "SIGCONT");
  await expect.poll(supervisors).toEqual([]);
});

it("a start in the background whose supervisor is killed says so, and leaves nothing behind", async () => {
  const up = start(["-d"], NEVER_READY);
  await expect.poll(() => readState(folder.instance.runDir)).toBeDefined();
  process.kill(readState(folder.instance.runDir)?.supervisor.pid ?? Number.NaN, "SIGKILL");
  expect(await up.ended).toBe(1);
  expect(up.said()).toContain("error: the supervisor ended (SIGKILL)\n");
  expect((await svc(["status"], folder.environment)).code).toBe(3);
  expect(leftovers()).toEqual([]);
});

it("of two starts at once one fails alone, and the other goes on", async () => {
  const { packagesDir, runDir } = folder.instance;
  // Nothing runs yet when both look: they come out of the build of the image together.
  const build = spawn("flock", [join(packagesDir, ".links.lock"), "cat"], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  const ups = [start(["-d"], NEVER_READY), start(["-d"], NEVER_READY)];
  for (const up of ups)
    await expect.poll(up.said, { timeout: 60_000 }).toContain("The root image of the jails …\n");
  build.stdin.end();
  const ended = await Promise.race(ups.map(async (up) => ({ up, code: await up.ended })));
  expect(ended.code).toBe(1);
  expect(ended.up.said()).toContain(`error: already running on ${folder.instance.dataDir}\n`);
  await expect.poll(() => readState(runDir)?.phase).toBe("starting");
  const other = ups.find((up) => up !== ended.up);
  other?.child.kill("SIGINT");
  expect(await other?.ended).toBe(130);
  expect(leftovers()).toEqual([]);
});

it("a start while a copy is ending waits for the end, and starts a new one", async () => {
  const { runDir } = folder.instance;
  expect((await svc(["up", "-d", "--no-example"], folder.environment)).code).toBe(0);
  const first = readState(runDir);
  const api = first?.components.find(({ name }) => runsIn(name, "api"))?.process?.pid ?? Number.NaN;
  process.kill(api, "SIGSTOP");
  const down = svc(["down"], folder.environment);
  await expect.poll(() => readState(runDir)?.phase).toBe("stopping");
  const up = start(["-d"]);
  await expect.poll(up.said).toContain("waiting: the copy that runs is ending\n");
  process.kill(api, "SIGCONT");
  expect(await up.ended, up.said()).toBe(0);
  expect(await down).toMatchObject({ code: 0 });
  expect(readState(runDir)?.supervisor.pid).not.toBe(first?.supervisor.pid);
  expect((await svc(["status"], folder.environment)).code).toBe(0);
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
