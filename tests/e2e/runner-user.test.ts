/**
 * Somebody has taken over the runner and acts as its user on the machine. What is not the runner's is closed to this intruder by the
 * rights of files and processes alone.
 */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { userOf } from "@svc/cli/users";
import { SandboxSide } from "@svc/test-kit/system/sandbox-side";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { beforeAll, expect, test } from "vitest";
import type { Try } from "./support/intruder.ts";

const system = sharedSystem();

beforeAll(async () => {
  await new SandboxSide(system).store("t:user:bob", "theirs.txt", "theirs");
});
/** What the runner's user gets from each try. */
async function triesOf(tries: readonly Try[]): Promise<string[]> {
  const { uid } = userOf("runner", system.instance);
  const environment = readFileSync(`/proc/${system.pid("runner")}/environ`, "latin1")
    .split("\0")
    .filter(Boolean);
  const child = spawn(process.execPath, [join(import.meta.dirname, "support/intruder.ts"), String(uid)], {
    env: Object.fromEntries(
      environment.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    ),
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.end(JSON.stringify(tries));
  const answer = JSON.parse(await text(child.stdout)) as { uid: number; results: string[] };
  expect(answer.uid).toBe(uid);
  return answer.results;
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

test("no file of the others, no socket of Redis, no process is within reach of the runner's user", async () => {
  const { dataDir, redisSocket, logsDir } = system.instance;
  const objects = filesBelow(join(dataDir, "objects")).filter((path) =>
    readFileSync(path, "latin1").includes("theirs"),
  );
  expect(objects.length).toBeGreaterThan(0);
  expect(existsSync(redisSocket) && statSync(redisSocket).isSocket()).toBe(true);
  const others = (
    ["api", "worker", "egress-gateway", "file-server", "tool-call-server", "redis", "jaild"] as const
  ).map((name) => system.pid(name));
  const closed: Try[] = [
    { connect: redisSocket },
    ...objects.flatMap((path) => [{ read: path }, { write: path }]),
    { list: dataDir },
    { list: join(dataDir, "objects") },
    { list: join(dataDir, "redis") },
    { list: join(dataDir, "run") },
    { read: join(dataDir, "secrets.env") },
    { write: join(dataDir, "secrets.env") },
    { read: join(logsDir, "worker.log") },
    ...others.flatMap((pid) => [
      { read: `/proc/${pid}/environ` },
      { read: `/proc/${pid}/mem` },
      { list: `/proc/${pid}/fd` },
      { signal: pid },
    ]),
  ];
  const results = await triesOf(closed);
  const open = closed.filter((_, at) => !["EACCES", "EPERM"].includes(results[at] ?? ""));
  expect(open).toEqual([]);
});

test("the runner's user can do what a runner does: the tries above fail for want of rights alone", async () => {
  const jailSocket = { connect: system.instance.jailSocket };
  expect(await triesOf([{ read: "/etc/passwd" }, jailSocket])).toEqual(["done", "done"]);
});
