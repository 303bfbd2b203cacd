/** New namespaces by clone, clone3, unshare and setns, with every flag alone, in pairs and under garbage. */
import { expect, test } from "vitest";
import { evidence } from "../support/hostile.ts";

/** NEWTIME (unshare alone), NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET */
const FLAGS = [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000];
const CLONE_FLAGS = FLAGS.filter((flag) => flag !== 0x80);

test("clone refuses each namespace flag, alone, in pairs, and with garbage above", async () => {
  expect(
    await evidence(`
flags = ${JSON.stringify(CLONE_FLAGS)}
show(sorted({call(56, high << 32 | a | b | signal, 0, 0, 0, 0) for a in flags for b in flags for high in (0, 1, 0xffffffff) for signal in (0, 17)}))`),
  ).toEqual(["EPERM"]);
});

test("clone3, unshare and setns do not exist", async () => {
  expect(
    await evidence(`
import struct
flags = ${JSON.stringify(FLAGS)}
seen = set()
for flag in flags + [sum(flags), 0]:
    for size in (64, 80, 88, 96):
        args = ctypes.create_string_buffer(struct.pack("<Q", flag) + b"\\0" * (size - 8), size)
        seen.add(("clone3", call(435, args, size)))
    seen.add(("unshare", call(272, flag)))
    seen.add(("unshare", call(272, 1 << 32 | flag)))
    for name in ("mnt", "pid", "net", "ipc", "uts", "user", "cgroup"):
        fd = os.open("/proc/self/ns/" + name, os.O_RDONLY)
        seen.add(("setns", call(308, fd, flag)))
        os.close(fd)
    seen.add(("setns", call(308, os.pidfd_open(os.getpid()), flag)))
show(sorted(seen))`),
  ).toEqual([
    ["clone3", "ENOSYS"],
    ["setns", "ENOSYS"],
    ["unshare", "ENOSYS"],
  ]);
});

test("the namespaces of pid 1 cannot be opened, and a child's are the program's own", async () => {
  expect(
    await evidence(`
names = sorted(os.listdir("/proc/self/ns"))
own = {name: os.readlink("/proc/self/ns/" + name) for name in names}
pid = os.fork()
if pid == 0:
    import time; time.sleep(20)
same = all(os.readlink(f"/proc/{pid}/ns/{name}") == own[name] for name in names if not name.endswith("_for_children"))
os.kill(pid, 9)
show([sorted({attempt(lambda: os.open("/proc/1/ns/" + name, os.O_RDONLY)) for name in names}), same, len(names) >= 7])`),
  ).toEqual([["EACCES"], true, true]);
});

test("descriptors of namespaces answer no question about their owners", async () => {
  // NS_GET_USERNS, NS_GET_PARENT, NS_GET_NSTYPE, NS_GET_OWNER_UID, NS_GET_MNTNS_ID, NS_GET_PID_FROM_PIDNS
  expect(
    await evidence(`
show(sorted({call(16, os.open("/proc/self/ns/" + name, os.O_RDONLY), request, ctypes.create_string_buffer(64))
  for name in ("mnt", "pid", "net", "user") for request in (0xb701, 0xb702, 0xb703, 0xb704, 0x8008b705, 0x8004b706, 0x8010b70a)}))`),
  ).toEqual(["ENOTTY"]);
});

test("the maps of users and groups cannot be written, nor setgroups", async () => {
  const [writes, maps] = await evidence<[string[], string[]]>(`
def write(path, text):
    fd = os.open(path, os.O_WRONLY); os.write(fd, text)
show([sorted({attempt(lambda: write(f"/proc/{who}/{name}", text)) for who in ("self", "thread-self", "1", str(os.getpid()))
  for name in ("uid_map", "gid_map", "projid_map", "setgroups") for text in (b"0 0 1", b"0 1000 1", b"0 0 4294967295", b"allow")}),
  [open("/proc/self/uid_map").read().split()[0::2], open("/proc/self/setgroups").read().strip()]])`);
  expect(writes.filter((result) => !["EROFS", "EACCES", "EPERM", "ENOENT"].includes(result))).toEqual([]);
  expect(maps).toEqual([["1000", "1"], "deny"]);
});

test("counterpart: threads, children, process pools and subprocesses start", async () => {
  expect(
    await evidence(`
import asyncio, concurrent.futures, multiprocessing, subprocess, threading
said = []
t = threading.Thread(target=lambda: said.append("thread")); t.start(); t.join()
with multiprocessing.get_context("fork").Pool(2) as pool: said.append(pool.map(abs, [-1, -2]))
with concurrent.futures.ThreadPoolExecutor(4) as pool: said.append(sum(pool.map(abs, range(100))))
said.append(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout)
async def main():
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    return (await process.communicate(b"async"))[0].decode()
said.append(asyncio.run(main()))
said.append(os.posix_spawn("/bin/true", ["true"], {}) > 0)
show(said)`),
  ).toEqual(["thread", [1, 2], 4950, "child\n", "async", true]);
});
