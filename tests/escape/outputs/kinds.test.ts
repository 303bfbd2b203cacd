/** Outputs that are no files: links, fifos, sockets, devices, folders with the names of files, holes, and what they point to. */

import { output } from "@svc/test-kit/system/api";
import { expect, test } from "vitest";
import { hostile } from "../support/hostile.ts";
import { attacker } from "../support/running.ts";

const omittedTypes = (names: readonly string[]) => names.toSorted().map((name) => ({ name, reason: "type" }));

test("symbolic links to everything come back as nothing, and nothing behind them does", async () => {
  const targets = [
    "/etc/passwd",
    "/proc/self/environ",
    "/proc/1/environ",
    "/dev/zero",
    "/dev/stdin",
    "real.txt",
    ".",
    "/",
    "missing",
    "/run/svc",
    "../../etc",
    "/proc/self/fd/0",
    "x".repeat(4000),
  ];
  const code = `
import json, os, sys
open("real.txt", "w").write("real")
for at, target in enumerate(json.load(sys.stdin)): os.symlink(target, f"link{at:02}")`;
  const answer = await hostile({ lang: "py", code, stdin: JSON.stringify(targets) });
  expect(answer.files.map(({ name }) => name)).toEqual(["real.txt"]);
  expect(answer.files_omitted).toEqual(
    omittedTypes(targets.map((_, at) => `link${String(at).padStart(2, "0")}`)),
  );
  expect((await attacker.bytes(output(answer, "real.txt"))).toString()).toBe("real");
});

test("fifos and sockets do not hold up the collection, with or without somebody at the other end", async () => {
  const answer = await hostile({
    lang: "py",
    code: `
import os, socket
for n in range(20): os.mkfifo(f"fifo{n:02}")
held = [os.open(f"fifo{n:02}", os.O_RDWR) for n in range(10)]
for fd in held: os.write(fd, b"x" * 1000)
for n in range(5):
    s = socket.socket(socket.AF_UNIX); s.bind(f"socket{n}"); s.listen()
open("file", "w").write("x")
if os.fork() == 0: os.setsid(); open("fifo15").read()`,
  });
  expect(answer.files.map(({ name }) => name)).toEqual(["file"]);
  expect(answer.files_omitted_count).toBe(25);
  expect(answer.timings.collect_ms).toBeLessThan(5000);
});

test("devices cannot be made by any tool or call", async () => {
  const { stdout, files } = await hostile({
    lang: "bash",
    code: `for kind in "c 1 3" "b 8 0" "c 5 1" "c 0 0"; do mknod "dev" $kind 2> /dev/null && echo made; done
cp -a /dev/null copied 2> /dev/null; [ -c copied ] && echo copied; tar -C /dev -cf t.tar null && tar -xf t.tar 2> /dev/null; [ -c null ] && echo unpacked
rm -f copied null t.tar; exit 0`,
  });
  expect([stdout, files]).toEqual(["", []]);
});

test("folders named like files, files named like folders, and inputs that changed their kind", async () => {
  const inputs = [await attacker.stage("a.txt", "a"), await attacker.stage("b/c.txt", "c")];
  const answer = await hostile({
    lang: "bash",
    code: `rm a.txt; mkdir a.txt; echo x > a.txt/inside; rm -r b; echo x > b; mkdir -p report.pdf/page.html main.py .git.d; echo y > report.pdf/page.html/z`,
    files: inputs,
  });
  expect(answer.files.map(({ name }) => name).sort()).toEqual([
    "a.txt/inside",
    "b",
    "main.py/.dirkeep",
    "report.pdf/page.html/z",
  ]);
  expect(answer.deleted_files?.toSorted()).toEqual(["a.txt", "b/c.txt"]);
});

test("hard links of one file are files with equal bytes, and an input linked over another is seen", async () => {
  const inputs = [await attacker.stage("one.txt", "1111"), await attacker.stage("two.txt", "2222")];
  const answer = await hostile({
    lang: "bash",
    code: `echo -n data > x; for n in 1 2 3; do ln x y$n; done; ln -f one.txt two.txt`,
    files: inputs,
  });
  for (const name of ["x", "y1", "y2", "y3"])
    expect((await attacker.bytes(output(answer, name))).toString()).toBe("data");
  expect((await attacker.bytes(output(answer, "two.txt"))).toString()).toBe("1111");
  expect(output(answer, "two.txt").modified_from?.id).toBe(inputs[1]?.id);
  expect(output(answer, "one.txt").inherited).toBe(true);
});

test("content that was changed with its times kept is seen as changed, by every way of writing", async () => {
  const ways = {
    write: `with open(p, "r+b") as f: f.seek(500); f.write(b"#")`,
    map: `import mmap\nwith open(p, "r+b") as f:\n  with mmap.mmap(f.fileno(), 0) as m: m[500] = 35`,
    replace: `d = bytearray(open(p, "rb").read()); d[500] = 35; open("n", "wb").write(d); os.utime("n", ns=(s.st_atime_ns, s.st_mtime_ns)); os.replace("n", p)`,
    link: `os.link(p, "l"); f = open("l", "r+b"); f.seek(500); f.write(b"#"); f.close(); os.remove("l")`,
    sendfile: `m = os.memfd_create("m"); os.write(m, b"#"); f = os.open(p, os.O_RDWR); os.lseek(f, 500, 0); os.sendfile(f, m, 0, 1); os.close(f)`,
    copy: `m = os.open("m", os.O_RDWR | os.O_CREAT); os.write(m, b"#"); os.unlink("m"); f = os.open(p, os.O_RDWR); os.copy_file_range(m, f, 1, 0, 500); os.close(f)`,
  };
  const names = Object.keys(ways);
  const inputs = await Promise.all(
    names.map((name) => attacker.stage(`${name}.bin`, "0123456789".repeat(100))),
  );
  const code = `import os\n${Object.entries(ways)
    .map(
      ([name, way]) =>
        `p = "${name}.bin"; s = os.stat(p)\n${way}\nos.utime(p, ns=(s.st_atime_ns, s.st_mtime_ns))\n`,
    )
    .join("")}`;
  const answer = await hostile({ lang: "py", code, files: inputs });
  expect(answer.stderr).toBe("");
  for (const [at, name] of names.entries()) {
    const file = output(answer, `${name}.bin`);
    expect([name, file.modified_from?.id]).toEqual([name, inputs[at]?.id]);
    expect((await attacker.bytes(file)).at(500)).toBe(35);
  }
});
