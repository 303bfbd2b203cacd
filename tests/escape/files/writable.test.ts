/** Changes anywhere but in the workspace, /tmp and /dev/shm: new files, open ones, modes, owners, times, links, attributes. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";
import { running } from "../support/running.ts";

const REFUSALS = [
  "EROFS",
  "EACCES",
  "EPERM",
  "ENOENT",
  "EXDEV",
  "ETXTBSY",
  "EISDIR",
  "ENOTSUP",
  "EOPNOTSUPP",
  "EBUSY",
  "EINVAL",
  "ENXIO",
  "EEXIST",
];
/** Names, modes, owners, times of change and sizes of everything in the image. */
const stateOfImage = () =>
  execFileSync("bash", ["-c", "find . -xdev -printf '%p %m %U %G %s %C@\\n' | LC_ALL=C sort | sha256sum"], {
    cwd: running.image,
  }).toString();

test("a new file can be made in three places only", async () => {
  expect(
    await evidence(`
made = set()
for folder, folders, _ in os.walk("/"):
    for name in (".probe", "probe"):
        path = os.path.join(folder, name)
        for make in (lambda: open(path, "x").close(), lambda: os.mkdir(path), lambda: os.symlink("x", path), lambda: os.mkfifo(path)):
            if attempt(make) == "ok":
                made.add("/".join(folder.split("/")[:3]) if folder.startswith(("/mnt", "/dev")) else folder)
                os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    if folder.startswith("/proc/"): folders.clear()
show(sorted(made))`),
  ).toEqual(["/dev/shm", "/mnt/data", "/tmp"]);
});

test("no file outside can be opened for writing, cut, or given to somebody", async () => {
  const before = stateOfImage();
  const [count, results] = await evidence<[number, string[]]>(`
results, count = set(), 0
for folder, folders, names in os.walk("/"):
    if folder.startswith(("/proc", "/mnt/data", "/tmp", "/dev/shm")): folders.clear(); continue
    for name in names:
        path = os.path.join(folder, name)
        if os.path.islink(path) or path.startswith("/dev/"): continue
        count += 1
        for action in (lambda: os.open(path, os.O_WRONLY), lambda: os.open(path, os.O_RDWR | os.O_TRUNC), lambda: os.truncate(path, 0)):
            results.add(attempt(action))
        if count % 40 == 0:
            for action in (lambda: os.chmod(path, 0o777), lambda: os.chown(path, 1000, 1000), lambda: os.utime(path), lambda: os.unlink(path),
                           lambda: os.rename(path, path + "x"), lambda: os.link(path, path + "x"), lambda: os.setxattr(path, "user.x", b"y")):
                results.add(attempt(action))
show([count, sorted(results)])`);
  expect(count).toBeGreaterThan(1000);
  expect(results.filter((result) => !REFUSALS.includes(result))).toEqual([]);
  expect(stateOfImage()).toBe(before);
});

test("nothing of the root can be reached by links from the workspace, hard or symbolic", async () => {
  const before = stateOfImage();
  const results = await evidence<string[]>(`
targets = ["/etc/passwd", "/usr/bin/python3", "/usr/lib/svc", "/dev/null", "/proc/self/status", "/run/svc", "/bin/bash"]
results = []
for at, target in enumerate(targets):
    os.symlink(target, f"link{at}")
    results += [attempt(lambda: os.link(target, f"hard{at}")), call(265, -100, ctypes.c_char_p(f"link{at}".encode()), -100, ctypes.c_char_p(f"hard{at}".encode()), 0x400),
      attempt(lambda: os.chmod(f"link{at}", 0o666)), attempt(lambda: os.chown(f"link{at}", 1000, 1000)), attempt(lambda: os.utime(f"link{at}")),
      attempt(lambda: os.rename(target, f"moved{at}")), attempt(lambda: os.open(f"link{at}/../x", os.O_CREAT | os.O_WRONLY))]
    fd = os.open(target, os.O_PATH)
    results += [call(265, -100, ctypes.c_char_p(f"/proc/self/fd/{fd}".encode()), -100, ctypes.c_char_p(f"hard{at}".encode()), 0x400), attempt(lambda: os.chmod(f"/proc/self/fd/{fd}", 0o777)),
      call(265, fd, ctypes.c_char_p(b""), -100, ctypes.c_char_p(b"linked"), 0x1000)]
show(results)`);
  expect(results.filter((result) => ![...REFUSALS, "ENOTDIR"].includes(result))).toEqual([]);
  expect(stateOfImage()).toBe(before);
});

test("setuid and setgid files: none is there, and the program's own give nothing", async () => {
  const { stdout } = await hostile({
    lang: "bash",
    code: `find / -xdev \\( -perm -4000 -o -perm -2000 \\) -type f 2>/dev/null
find / -xdev -type f 2>/dev/null | head -20000 | xargs getfattr -n security.capability 2>/dev/null | head -3
for d in /mnt/data /tmp /dev/shm; do cp /usr/bin/id $d/id; chmod 6755 $d/id; $d/id -u; $d/id -g; done`,
  });
  expect(stdout).toBe("1000\n".repeat(6));
});

test("the devices take and give bytes and nothing else", async () => {
  const results = await evidence<string[]>(`
results = []
for name in ("null", "zero", "full", "random", "urandom"):
    path = "/dev/" + name
    results += [attempt(lambda: os.chmod(path, 0)), attempt(lambda: os.unlink(path)), attempt(lambda: os.utime(path)), attempt(lambda: os.chown(path, 1000, 1000))]
    fd = os.open(path, os.O_RDWR)
    results += [call(16, fd, request, ctypes.create_string_buffer(64)) for request in (0x5201, 0x40085203, 0x5204, 0x5206, 0x5207)]
show(sorted(set(results)))`);
  expect(results.filter((result) => !["EROFS", "EPERM", "ENOTTY", "EACCES"].includes(result))).toEqual([]);
});

test("counterpart: programs write, execute and keep files in their own three places", async () => {
  const { stdout } = await hostile({
    lang: "bash",
    code: `for d in /mnt/data /tmp /dev/shm; do cd $d
printf '#!/bin/sh\\necho ran $1\\n' > p; chmod 755 p; ./p script; cp /bin/echo e; ./e binary
ln p q; ln -s p s; ./s link; mkfifo f; (echo fifo > f &); cat f; truncate -s 5 t; stat -c %s t; chmod 000 t; chmod 600 t; mv t u; rm -r u
done; cd /mnt/data; python3 -c '
import sqlite3, tempfile
with tempfile.NamedTemporaryFile() as f: f.write(b"x")
db = sqlite3.connect("a.db"); db.execute("create table t (x)"); db.commit(); print("db")'
git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --format=%s`,
  });
  expect(stdout).toBe(`${"ran script\nbinary\nran link\nfifo\n5\n".repeat(3)}db\nx\n`);
});
