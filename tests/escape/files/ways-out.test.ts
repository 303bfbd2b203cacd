/** Out of the root: by dot dots, descriptors of directories, links, chroot, moved directories, deep paths, handles. */
import { expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";

test("no way of dot dots ends elsewhere than at the root", async () => {
  expect(
    await evidence(`
root = os.stat("/"); seen = set()
def same(path): s = os.stat(path); seen.add((s.st_dev, s.st_ino) == (root.st_dev, root.st_ino))
for path in ("/..", "/../../../..", "/proc/self/root", "/proc/self/root/..", "/proc/self/cwd/../..", "/mnt/data/../../..", "/proc/self/task/../../../..", "/tmp/../.."): same(path)
os.chdir("/")
for _ in range(200): os.chdir("..")
same(".")
fd = os.open("/", os.O_RDONLY)
for _ in range(50):
    up = os.open("..", os.O_RDONLY, dir_fd=fd); os.close(fd); fd = up
same(f"/proc/self/fd/{fd}")
os.fchdir(fd); same(".")
fd = os.open("/", os.O_PATH | os.O_DIRECTORY); os.fchdir(fd); os.chdir(".."); same(".")
show([sorted(seen), os.getcwd()])`),
  ).toEqual([[true], "/"]);
});

test("a directory that is moved while one stands in it does not lead out of the workspace's parents", async () => {
  expect(
    await evidence(`
os.makedirs("a/b/c"); os.makedirs("/tmp/t")
deep = os.open("a/b/c", os.O_RDONLY)
os.fchdir(deep)
os.rename("/mnt/data/a/b/c", "/mnt/data/c")
across = attempt(lambda: os.rename("/mnt/data/c", "/tmp/t/c"))
for _ in range(20): os.chdir("..")
s, root = os.stat("."), os.stat("/")
os.fchdir(deep); os.rmdir("/mnt/data/c")
gone = attempt(lambda: os.stat(".."))
show([across, s.st_ino == root.st_ino, gone in ("ok", "ENOENT"), attempt(lambda: open("new", "w"))])`),
  ).toEqual(["EXDEV", true, true, "ENOENT"]);
});

test("chroot, pivot_root and mounts do not exist to move the root", async () => {
  expect(
    await evidence(`
os.mkdir("jail")
show([attempt(lambda: os.chroot("jail")), attempt(lambda: os.chroot("/")), call(155, ctypes.c_char_p(b"jail"), ctypes.c_char_p(b"jail")),
  call(165, ctypes.c_char_p(b"/"), ctypes.c_char_p(b"jail"), 0, 4096, 0), call(428, -100, ctypes.c_char_p(b"/"), 0x8001)])`),
  ).toEqual(Array(5).fill("ENOSYS"));
});

test("openat2, whose flags no filter sees, does not exist; openat leads neither out nor to others", async () => {
  expect(
    await evidence(`
import struct
os.symlink("../../etc/passwd", "up")
here = os.open(".", os.O_RDONLY)
def open2(path, resolve): return call(437, here, ctypes.c_char_p(path), ctypes.create_string_buffer(struct.pack("<3Q", 0, 0, resolve)), 24)
def open1(path): return call(257, here, ctypes.c_char_p(path), 0)
show([sorted({open2(path, resolve) for path in (b"up", b"/proc/1/root", b"../..") for resolve in (0, 2, 4, 8, 16)}),
  open1(b"/proc/1/root"), open1(b"/proc/1/cwd"), open1(b"../../../../../nothing"), os.path.samefile("/", "../../../.."), open1(b"up")])`),
  ).toEqual([["ENOSYS"], "EACCES", "EACCES", "ENOENT", true, "ok"]);
});

test("links into other processes' roots and directories are closed, also in races with new processes", async () => {
  const { stdout } = await hostile({
    lang: "py",
    code: `import os, time
seen = set()
until = time.monotonic() + 1.5
while time.monotonic() < until:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("root/sys", "root/home", "cwd/../../sys", "root/root", "root/.dockerenv"):
            try: seen.update(os.listdir(f"/proc/{pid}/{name}"))
            except OSError: pass
    if os.fork() == 0: os._exit(0)
    os.wait()
print(sorted(seen))`,
  });
  expect(stdout).toBe("[]\n");
});

test("paths thousands of directories deep are made, walked and left behind without harm", async () => {
  const answer = await hostile({
    lang: "py",
    code: `import os
for top in ("/mnt/data", "/tmp", "/dev/shm"):
    os.chdir(top)
    for _ in range(4000):
        os.mkdir("d"); os.chdir("d")
    open("bottom", "w").close()
    os.symlink("../" * 1300 + "etc/passwd", "up")
print("made")`,
  });
  expect(answer).toMatchObject({ stdout: "made\n", code: 0 });
  expect(answer.files).toEqual([]);
  expect(answer.files_omitted_count).toBeGreaterThan(0);
});

test("loops of links and of names end as errors", async () => {
  expect(
    await evidence(`
os.symlink("a", "b"); os.symlink("b", "a"); os.symlink(".", "self"); os.mkdir("dir")
show([attempt(lambda: open("a")), attempt(lambda: os.stat("self/" * 60)), attempt(lambda: os.rename("dir", "dir/in")), attempt(lambda: open("x" * 256, "w")),
  attempt(lambda: open("y/" * 2100, "w")), attempt(lambda: os.link("dir", "dir2"))])`),
  ).toEqual(["ELOOP", "ELOOP", "EINVAL", "ENAMETOOLONG", "ENAMETOOLONG", "EPERM"]);
});
