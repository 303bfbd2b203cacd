/** Which files of a program come back, which do not, and how that is told. */

import { Api, output } from "@svc/test-kit/system/api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { describe, expect, test } from "vitest";

const MAX_FILE = 10_000_000;
const api = new Api(sharedSystem().url);

const bash = (code: string, more: object = {}) => api.exec({ lang: "bash", code, ...more });
const python = (code: string, more: object = {}) => api.exec({ lang: "py", code, ...more });
const note = (name: string, reason: string) => `[sandbox] Output file omitted: ${name} (${reason})\n`;

describe("limits", () => {
  test.each([50, 51, 60])("of %i files the first 50 by path come back", async (count) => {
    const answer = await bash(`for n in $(seq -w 1 ${count}); do echo $n > f$n; done`);
    const omitted = Array.from({ length: count - 50 }, (_, at) => ({ name: `f${51 + at}`, reason: "count" }));
    expect(answer.files).toHaveLength(50);
    expect(answer.files.at(-1)?.name).toBe("f50");
    if (count === 50) {
      expect(answer).not.toHaveProperty("files_omitted");
      expect(answer).toMatchObject({ stderr: "", status: null });
      return;
    }
    expect(answer).toMatchObject({ files_omitted: omitted, files_omitted_count: omitted.length, code: 0 });
    const lines = omitted
      .slice(0, 5)
      .map(({ name }) => note(name, "count: at most 50 files are returned, an archive counts as one"));
    const more = omitted.length > 5 ? `[sandbox] and ${omitted.length - 5} more\n` : "";
    expect(answer.stderr).toBe(lines.join("") + more);
  });

  test("thousands of files: a bounded list and the real number", async () => {
    const answer = await python("for n in range(5000): open(f'f{n:04}', 'w').close()");
    expect(answer.files).toHaveLength(50);
    expect(answer.files_omitted).toHaveLength(100);
    expect(answer.files_omitted_count).toBe(4950);
    expect(answer.stderr.split("\n").filter(Boolean)).toHaveLength(6);
    expect(answer.stderr).toContain("[sandbox] and 4945 more\n");
  });

  test("inherited files do not count as outputs", async () => {
    const inputs = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`in/${at}`, `${at}`]));
    const files = (await api.upload(inputs)).map(({ id, name, storage_session_id }) => ({
      id,
      name,
      storage_session_id,
    }));
    const answer = await bash("for n in $(seq -w 1 50); do echo $n > f$n; done", { files });
    expect(answer.files).toHaveLength(110);
    expect(answer.files.slice(50).map(({ name }) => name)).toEqual(Object.keys(inputs));
    expect(answer).not.toHaveProperty("files_omitted");
  });

  test("a file of the largest size comes back byte for byte, one byte more does not", async () => {
    const code = `
import random
random.seed(7)
data = random.randbytes(${MAX_FILE})
open("largest.bin", "wb").write(data)
open("larger.bin", "wb").write(data + b"x")
open("sparse.bin", "wb").truncate(${MAX_FILE + 1})
open("empty.bin", "wb").close()
import hashlib
print(hashlib.sha256(data).hexdigest())`;
    const answer = await python(code);
    expect(answer.files.map(({ name }) => name)).toEqual(["empty.bin", "largest.bin"]);
    expect(answer.files_omitted).toEqual([
      { name: "larger.bin", reason: "size" },
      { name: "sparse.bin", reason: "size" },
    ]);
    const why = "size: 10,000,001 bytes, at most 10,000,000 bytes";
    expect(answer.stderr).toBe(note("larger.bin", why) + note("sparse.bin", why));
    const { createHash } = await import("node:crypto");
    const bytes = await api.bytes(output(answer, "largest.bin"));
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(answer.stdout.trim());
    expect(await api.bytes(output(answer, "empty.bin"))).toHaveLength(0);
  });

  test("paths that are too long or too deep, and names that are not text, are omitted by name", async () => {
    const code = `
import os
def make(path):
    os.makedirs(os.path.dirname(path) or b".", exist_ok=True)
    open(path, "wb").close()
make(b"1/2/3/4/5/6/7/8/9/ten")
make(b"1/2/3/4/5/6/7/8/9/10/eleven")
make(b"l" * 200 + b"/" + b"m" * 55)
make(b"l" * 200 + b"/" + b"m" * 56)
make(b"new\\nline")
make(b"back\\\\slash")
make(b"invalid\\xff")
make(b"escape\\x1b[31m")
make("ü".encode() * 127)`;
    const answer = await python(code);
    expect(answer.code).toBe(0);
    expect(answer.files.map(({ name }) => name)).toEqual([
      "1/2/3/4/5/6/7/8/9/ten",
      `${"l".repeat(200)}/${"m".repeat(55)}`,
      "ü".repeat(127),
    ]);
    expect(answer.files_omitted?.every(({ reason }) => reason === "name")).toBe(true);
    expect(answer.files_omitted?.map(({ name }) => name).sort()).toEqual(
      [
        "1/2/3/4/5/6/7/8/9/10/eleven",
        "back\\slash",
        "escape\ufffd[31m",
        "invalid\ufffd",
        `${"l".repeat(200)}/${"m".repeat(56)}`,
        "new\ufffdline",
      ].sort(),
    );
    expect(answer.stderr).toMatch(/^(\[sandbox\] [^\n]*\n){6}$/);
    expect(answer.stderr).not.toContain("\x1b");
  });

  test("directories thousands deep do not stop the collection", async () => {
    const code = `
import os
open("found.txt", "w").write("found")
for _ in range(3000):
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
open("bottom", "w").close()`;
    const answer = await python(code);
    expect(answer.files.map(({ name }) => name)).toEqual(["found.txt"]);
    expect(answer.files_omitted_count).toBeGreaterThanOrEqual(1);
    for (const { name } of answer.files_omitted ?? []) expect(name.length).toBeLessThan(400);
  });
});

describe("kinds of files", () => {
  test("links, pipes, sockets and what they point to stay behind", async () => {
    const code = `
import os, socket
open("real.txt", "w").write("real")
os.symlink("real.txt", "link.txt")
os.symlink("/etc/passwd", "passwd")
os.symlink("/", "root")
os.mkdir("dir"); open("dir/inside", "w").close(); os.symlink("dir", "dirlink")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")`;
    const answer = await python(code);
    expect(answer).toMatchObject({ code: 0, stderr: "" });
    expect(answer.files.map(({ name }) => name)).toEqual(["dir/inside", "real.txt"]);
    expect(answer.files_omitted?.map(({ name, reason }) => `${name} ${reason}`).sort()).toEqual(
      ["dirlink", "link.txt", "passwd", "pipe", "root", "socket"].map((name) => `${name} type`),
    );
    expect(answer.files_omitted_count).toBe(6);
  });

  test("devices cannot be made", async () => {
    const answer = await bash("mknod null c 1 3; mknod disk b 8 0; ls");
    expect(answer.stdout).toBe("script.sh\n");
    expect(answer.files).toEqual([]);
  });

  test("dot directories are left out in silence, dot files are ordinary", async () => {
    const answer = await bash(`
mkdir -p .cache/deep sub/.git
echo > .cache/deep/file; echo > sub/.git/config; echo > .env; echo > sub/.gitignore`);
    expect(answer.files.map(({ name }) => name)).toEqual([".env", "sub/.gitignore"]);
    expect(answer).not.toHaveProperty("files_omitted");
    expect(answer.stderr).toBe("");
  });

  test("below an input, a dot directory is an ordinary one", async () => {
    const files = [await api.stage(".config/app.json", "{}")];
    const answer = await bash("echo > .config/new.json; mkdir -p .other; echo > .other/file", { files });
    expect(answer.files.map(({ name, inherited }) => [name, inherited ?? false])).toEqual([
      [".config/new.json", false],
      [".config/app.json", true],
    ]);
  });

  test("permissions that the program took away do not hide its files", async () => {
    const answer = await bash(
      "mkdir locked; echo secret > locked/file; chmod 000 locked/file locked; echo a > b; chmod 0 b",
    );
    expect(answer.files.map(({ name }) => name)).toEqual(["b", "locked/file"]);
    expect((await api.bytes(output(answer, "locked/file"))).toString()).toBe("secret\n");
  });

  test("files of every type come back byte for byte", async () => {
    const contents: Record<string, string> = {
      "broken.json": '{"a": ',
      "data.json": '{ "a" : 1 }\n',
      "form.txt": "a=1&b=2",
      "page.html": "<b>ü</b>",
      "program.bin": "\0\x01\x7fELF",
      "table.csv": "a,b\r\n",
    };
    const code = "import json\nfor n, c in json.load(open(0)).items(): open(n, 'w', newline='').write(c)";
    const answer = await python(code, { stdin: JSON.stringify(contents) });
    expect(answer.stderr).toBe("");
    expect(answer.files.map(({ name }) => name)).toEqual(Object.keys(contents));
    for (const file of answer.files) expect((await api.bytes(file)).toString()).toBe(contents[file.name]);
  });

  test("names that a browser would act on are served as attachments", async () => {
    const answer = await bash("echo '<script>alert(1)</script>' > page.html; echo '<svg/>' > image.svg");
    for (const file of answer.files) {
      const { headers } = await api.download(file);
      expect(headers.get("content-disposition")).toMatch(/^attachment;/);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
  });
});

describe("after every kind of end", () => {
  test.each([
    ["an exit code", "echo x > f; exit 9", {}, null],
    ["a signal", "echo x > f; kill -SEGV $$", {}, "SG"],
    ["a timeout", "echo x > f; sleep 60", { run_timeout: 500 }, "TO"],
    ["too much output", "echo x > f; yes", {}, "OL"],
    ["too much memory", "echo x > f; tail /dev/zero", {}, "ML"],
  ])("%s: the files are there", async (_name, code, more, status) => {
    const answer = await bash(code, more);
    expect(answer.status).toBe(status);
    expect(answer.files.map(({ name }) => name)).toEqual(["f"]);
    expect((await api.bytes(output(answer, "f"))).toString()).toBe("x\n");
  });

  test("a process that outlives the program cannot change its files", async () => {
    const answer = await bash("echo before > f; (sleep 0.2; echo after > f; echo > g) & sleep 0.05");
    expect(answer.files.map(({ name }) => name)).toEqual(["f"]);
    expect((await api.bytes(output(answer, "f"))).toString()).toBe("before\n");
  });

  test("a program that removes everything, itself too, ends well", async () => {
    const answer = await bash(
      "rm -rf /mnt/data/* /mnt/data/.* 2>/dev/null; rm -rf /tmp/*; rmdir /mnt/data; exit 0",
    );
    expect(answer).toMatchObject({ code: 0, status: null, files: [] });
  });
});
