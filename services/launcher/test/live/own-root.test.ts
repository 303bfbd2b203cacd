/** What a process that a guest took over finds around it. */
import { execFile } from "node:child_process";
import { chmod, chown, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { confined } from "@svc/cli/users";
import { afterAll, beforeAll, expect, it } from "vitest";
import { inOwnRoot } from "../../src/monitor/own-root.ts";

const run = promisify(execFile);
const USER = { uid: 230_990, gid: 230_990 };

let folder: string;
let image: string;
let saved: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-test-own-root-"));
  image = await mkdtemp(join(folder, "image-"));
  saved = await mkdtemp(join(folder, "saved-"));
  await writeFile(join(image, "kernel"), "a kernel");
  // Nobody but root comes here by the path.
  await chmod(folder, 0o700);
  await chmod(image, 0o755);
  await chown(saved, USER.uid, USER.gid);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A shell in the place of QEMU. */
async function inside(script: string, ...folders: [saved?: string]): Promise<string[]> {
  const words = [...inOwnRoot(image, ...folders), ...confined("KILL", USER), "/bin/sh", "-c", script];
  const [program = "", ...rest] = words;
  const { stdout } = await run(program, rest, { env: { PATH: "/usr/bin:/bin" } });
  return stdout.trim().split("\n");
}

it("there are programs, the image and devices, and nothing else of the machine", async () => {
  expect(await inside("cd /; printf '%s\\n' *; printf '%s\\n' dev/*; cat /guest/kernel")).toEqual(
    expect.arrayContaining(["bin", "dev", "guest", "lib", "lib64", "proc", "usr", "dev/null", "a kernel"]),
  );
  const [folders] = await inside("cd /; echo *");
  expect(folders).toBe("bin dev guest lib lib64 proc usr");
});

it("no folder and no file can be written, but where a machine is saved", async () => {
  const writable =
    "find / -xdev -writable -not -type l -not -path '/dev/*' 2>/dev/null; find /usr /guest -writable -not -type l 2>/dev/null; true";
  expect(await inside(writable)).toEqual([""]);
  const tried = "for at in / /dev /usr /usr/bin /guest; do touch $at/new 2>/dev/null && echo $at; done; true";
  expect(await inside(tried)).toEqual([""]);
  await inside("echo state >/saved/devices", saved);
  expect(await readFile(join(saved, "devices"), "utf8")).toBe("state\n");
});

it("no descriptor leads to the machine's folders, and no process of another user is seen", async () => {
  const descriptors = "readlink /proc/self/fd/* | grep ^/tmp; true";
  expect(await inside(descriptors, saved)).toEqual([""]);
  const others =
    'for at in /proc/[0-9]*; do [ "$(stat -c %u $at)" = $(id -u) ] || echo $at; done 2>/dev/null';
  // What was listed and has ended since is nobody's.
  expect((await inside(others)).filter((at) => at === "/proc/1")).toEqual([]);
});

it("a socket of the machine that everybody may use is not there", async () => {
  const open = await mkdtemp(join(tmpdir(), "svc-test-open-"));
  const path = join(open, "socket");
  const server = createServer((connection) => connection.on("error", () => undefined).end("come in"));
  server.listen({ path, writableAll: true });
  try {
    await chmod(open, 0o755);
    const connect = `perl -MIO::Socket::UNIX -e 'print IO::Socket::UNIX->new(Peer => "${path}") ? "in" : "out"'`;
    const { stdout } = await run("/bin/sh", ["-c", connect]);
    expect(stdout).toBe("in");
    expect(await inside(connect)).toEqual(["out"]);
  } finally {
    server.close();
    await rm(open, { recursive: true });
  }
});
