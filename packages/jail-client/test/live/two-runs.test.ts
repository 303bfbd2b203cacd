/**
 * Two programs of the same image at the same time: each has inodes of its own, so a lock of one is none of the other's.
 * Whatever a lock can be put on without a right to write is tried. Inside one run locks work.
 */
import { chmodSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, python, started } from "@svc/test-kit/jail/run";
import { PROBE } from "@svc/test-kit/programs/probe";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JailRun } from "../../src/index.ts";

const SLOTS = 2;

let jaild: Jaild;
let holder: JailRun | undefined;
const servers: Server[] = [];
beforeAll(async () => {
  jaild = await Jaild.start({ slots: SLOTS });
});
afterAll(async () => {
  for (const server of servers) server.close();
  holder?.close();
  await jaild.stop();
});

/** A program's word that it is as far, by a socket among its tools. */
function word(): Promise<void> {
  return new Promise((resolve, reject) => {
    for (let slot = 0; slot < SLOTS; slot++) {
      const path = join(jaild.tools, `${slot}`, "word.sock");
      const server = createServer((socket) => resolve(void socket.destroy()));
      servers.push(server.on("error", reject).listen(path, () => chmodSync(path, 0o666)));
    }
  });
}

const LOCKS = `${PROBE}
import fcntl, struct, sys
directories = ["/", "/usr", "/usr/bin", "/etc", "/dev", "/run", "/proc/sys", "/proc/sys/kernel", "/mnt", "/tmp", "/mnt/data"]
files = [sys.executable, "/bin/bash", "/etc/passwd", "/lib64/ld-linux-x86-64.so.2", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version",
  "/proc/locks", "/proc/sys/kernel/hostname", "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/proc/self/status"]
files += sorted({line.split()[5] for line in open("/proc/self/maps") if line.count("/") and ".so" in line})
files = list({(os.stat(path).st_dev, os.stat(path).st_ino): path for path in files}.values())
def whole(path): fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
def ranges(path):
    fd = os.open(path, os.O_RDONLY)
    fcntl.fcntl(fd, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_RDLCK, 0, 7, 1, 0))
def others(path):
    fd = os.open(path, os.O_RDONLY)
    return struct.unpack("hhqqi", fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)))[0] != fcntl.F_UNLCK
`;
const HOLD = `${LOCKS}
kept = [os.open(path, os.O_RDONLY) for path in directories + files]
for fd in kept: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
for fd in kept[len(directories):]: fcntl.fcntl(fd, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 0, 0))
import socket, time
socket.socket(socket.AF_UNIX).connect("/run/svc/word.sock"); time.sleep(1000)`;
const LOOK = `${LOCKS}
print(json.dumps([[p for p in directories + files if attempt(lambda: whole(p)) != "ok"], [p for p in files if others(p)],
  len(files), open("/proc/locks").read()]))`;

describe("locks", () => {
  it("of one program on what both can open are not there for the other", async () => {
    await jaild.full();
    const holds = word();
    holder = await started(jaild, { argv: ["/usr/bin/python3", "-c", HOLD] });
    await holds;
    const [held, ranges, files, list] = await python<[string[], string[], number, string]>(jaild, LOOK);
    expect(await holder.query(), "the first program still holds them").toBe("waiting");
    expect({ held, ranges, list }).toEqual({ held: [], ranges: [], list: "" });
    expect(files).toBeGreaterThan(18);
  });

  it("inside one run keep two processes apart, in the workspace and on the image", async () => {
    const seen = await python<string[][]>(
      jaild,
      `${LOCKS}
open("own", "w").close()
kept = [os.open(path, os.O_RDONLY) for path in ("own", "/etc/passwd", "/dev/null")]
for fd in kept:
    fcntl.flock(fd, fcntl.LOCK_EX)
    fcntl.fcntl(fd, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 0, 0))
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, json.dumps([[attempt(lambda: whole(p)), others(p)] for p in ("own", "/etc/passwd", "/dev/null")]).encode())
    os._exit(0)
os.wait()
print(os.read(read, 4096).decode())`,
    );
    expect(seen).toEqual(Array(3).fill(["EAGAIN", true]));
    const { out, err } = await bash(
      jaild,
      `exec 9> lock; flock 9; flock -n lock echo taken || echo waits; flock -u 9; flock -n lock echo taken
python3 - <<'E'
import sqlite3
one, two = (sqlite3.connect("d.sqlite", timeout=0, isolation_level=None) for _ in range(2))
one.execute("create table t(a)"); one.execute("begin immediate"); one.execute("insert into t values (1)")
try: two.execute("begin immediate")
except sqlite3.OperationalError as error: print(error)
one.execute("commit"); print(two.execute("select count(*) from t").fetchone())
E`,
    );
    expect([out, err]).toEqual(["waits\ntaken\ndatabase is locked\n(1,)\n", ""]);
  });
});

describe("the image", () => {
  it("tells neither where it lies on the host nor how full the host's disk is", async () => {
    const { out } = await bash(jaild, "cat /proc/self/mountinfo; stat -f -c 'blocks %b %f' / /etc");
    const image = out.split("\n").filter((line) => !line.includes(" /run/svc "));
    expect(image.filter((line) => /rootfs|ext4|xfs|\/dev\/[sv]d/.test(line))).toEqual([]);
    const [first, second] = out.split("\n").filter((line) => line.startsWith("blocks"));
    expect(first).toMatch(/^blocks \d+ \d+$/);
    expect(second).toBe(first);
    expect(Number(first?.split(" ")[1])).toBeLessThan(1000); // of the small layer over the image
  });
});
