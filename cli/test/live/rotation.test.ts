/** Rotation under writers that never pause: processes of their own, on the descriptors that they were started with. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { filesOf } from "../../src/logs/files.ts";
import { LogFollower } from "../../src/logs/follower.ts";
import { rotateLog } from "../../src/supervisor/rotation.ts";
import { statFields } from "../../src/system/process.ts";
import { whileWritersAreStopped } from "../../src/system/writers.ts";

/** Writes numbered lines as fast as it can, in two processes, until its input ends. */
const WRITER = `
const { writeSync } = require("node:fs");
const isChild = process.argv[1] === "child";
let n = 0;
const write = () => { for (let i = 0; i < 10; i++) writeSync(1, \`\${isChild ? "child" : "parent"} \${n++}\\n\`); setImmediate(write); };
const end = () => { writeSync(1, \`\${isChild ? "child" : "parent"} end \${n}\\n\`); process.exit(); };
if (isChild) process.on("disconnect", end);
else {
  const child = require("node:child_process").spawn(process.execPath, ["-e", process.env.SOURCE, "child"], { stdio: ["ignore", 1, 2, "ipc"] });
  process.stdin.on("end", () => { child.disconnect(); child.on("exit", end); }).resume();
}
write();`;

let folder: string;
let path: string;
let writer: ChildProcess;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-rotation-"));
  path = join(folder, "api.log");
  const log = openSync(path, "a", 0o600);
  writer = spawn(process.execPath, ["-e", WRITER], {
    stdio: ["pipe", log, "inherit"],
    env: { ...process.env, SOURCE: WRITER },
  });
  closeSync(log);
});
afterEach(() => {
  writer.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

const written = () => filesOf(path).map((file) => readFileSync(file, "utf8"));
const size = () => written().join("").length;

it("loses no line and repeats none, and a follower sees each once", async () => {
  const follower = new LogFollower(path);
  let followed: string[] = [];
  let rotations = 0;
  await expect.poll(() => written().join("")).toContain("child");
  while (rotations < 15) {
    if (rotateLog(path, { bytes: 1000, keep: 100 })) rotations++;
    if (rotations % 3 === 0) followed = followed.concat(follower.read());
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  writer.stdin?.end();
  await once(writer, "exit");
  followed = followed.concat(follower.read());
  const lines = written().join("").split("\n").filter(Boolean);
  for (const name of ["parent", "child"]) {
    const own = lines.filter((line) => line.startsWith(name));
    const count = Number(own.at(-1)?.replace(`${name} end `, ""));
    expect(count).toBeGreaterThan(100);
    expect(own.slice(0, -1)).toEqual(Array.from({ length: count }, (_, n) => `${name} ${n}`));
  }
  expect(followed).toEqual(lines);
});

it("stops writers only for the moment, and leaves one stopped that was", async () => {
  await expect.poll(size).toBeGreaterThan(0);
  const pid = writer.pid ?? 0;
  const log = openSync(path, "r");
  const state = () => statFields(pid)?.[0];
  expect(whileWritersAreStopped(log, () => expect(state()).toBe("T"))).toBe(true);
  expect(state()).not.toBe("T");
  writer.kill("SIGSTOP");
  await expect.poll(state).toBe("T");
  expect(whileWritersAreStopped(log, () => undefined)).toBe(true);
  expect(state()).toBe("T");
  closeSync(log);
});
