/** Inputs: every change of their bytes is seen, read-only ones cannot be changed, damaged ones stop the request. */

import { createHash } from "node:crypto";
import { closeSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { FileRef } from "@svc/contracts";
import { copiesOf } from "@svc/test-kit/components/input-copies";
import { Api, deletePath, output, refTo } from "@svc/test-kit/system/api";
import { IN_GUESTS, RUNNER } from "@svc/test-kit/system/guests";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { inputsFromCopies } from "@svc/test-kit/system/runner-metrics";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let system: System;
let api: Api;

beforeAll(async () => {
  system = await startSystem({ env: { ...OPEN_LIMITS, PYTHON_CONCURRENCY: "4" } });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

const CONTENT = "0123456789".repeat(1000);

describe("changes", () => {
  const UNSEEN: [name: string, code: string][] = [
    [
      "the same size and the old times",
      `
before = os.stat("in.bin")
with open("in.bin", "r+b") as file: file.seek(5000); file.write(b"#")
os.utime("in.bin", ns=(before.st_atime_ns, before.st_mtime_ns))`,
    ],
    [
      "a shared mapping",
      `
import mmap
with open("in.bin", "r+b") as file:
    with mmap.mmap(file.fileno(), 0) as view: view[5000] = ord("#")`,
    ],
    [
      "a hard link",
      `
os.link("in.bin", "/mnt/data/.link")
with open("/mnt/data/.link", "r+b") as file: file.seek(5000); file.write(b"#")
os.unlink("/mnt/data/.link")`,
    ],
    [
      "a new file in its place",
      `
data = bytearray(open("in.bin", "rb").read()); data[5000] = ord("#")
open("new", "wb").write(data)
os.replace("new", "in.bin")`,
    ],
    [
      "a descriptor that was opened before a rename",
      `
file = open("in.bin", "r+b")
os.rename("in.bin", "aside"); os.rename("aside", "in.bin")
file.seek(5000); file.write(b"#"); file.close()`,
    ],
    [
      "the last moment, from a child",
      `
if os.fork() == 0:
    with open("in.bin", "r+b") as file: file.seek(5000); file.write(b"#")
    os._exit(0)
os.wait()
os.kill(os.getpid(), 9)`,
    ],
  ];

  test.each(UNSEEN)("%s: the change is seen", async (_name, code) => {
    const ref = await api.stage("in.bin", CONTENT);
    const answer = await api.exec({ lang: "py", code: `import os\n${code}`, files: [ref] });
    const { id, storage_session_id } = ref;
    expect(output(answer, "in.bin").modified_from).toEqual({ id, storage_session_id });
    expect((await api.bytes(output(answer, "in.bin"))).toString()).toBe(
      `${CONTENT.slice(0, 5000)}#${CONTENT.slice(5001)}`,
    );
    expect((await api.bytes(ref)).toString()).toBe(CONTENT);
  });

  const HARMLESS: [name: string, code: string][] = [
    ["new times and another mode", `os.utime("in.bin"); os.chmod("in.bin", 0o777)`],
    ["the same bytes written again", `data = open("in.bin", "rb").read(); open("in.bin", "wb").write(data)`],
    [
      "a change that was taken back",
      `
open("in.bin", "ab").write(b"x")
os.truncate("in.bin", ${CONTENT.length})`,
    ],
    [
      "a copy in its place",
      `
import shutil
shutil.copy("in.bin", "/tmp/copy"); os.remove("in.bin"); shutil.copy("/tmp/copy", "in.bin")`,
    ],
    ["a second name for it", `os.link("in.bin", "/tmp/../mnt/data/.second"); os.remove("/mnt/data/.second")`],
  ];

  test.each(HARMLESS)("%s: the input is inherited", async (_name, code) => {
    const ref = await api.stage("in.bin", CONTENT);
    const answer = await api.exec({ lang: "py", code: `import os\n${code}`, files: [ref] });
    expect(answer).toMatchObject({ stderr: "", code: 0 });
    expect(answer.files).toMatchObject([{ ...ref, kind: "user", inherited: true, size: CONTENT.length }]);
  });

  test("a hard link of an input is a new file with its bytes", async () => {
    const ref = await api.stage("in.bin", CONTENT);
    const answer = await api.exec({ lang: "bash", code: "ln in.bin twin.bin", files: [ref] });
    expect(answer.files.map(({ name, inherited }) => [name, inherited ?? false])).toEqual([
      ["twin.bin", false],
      ["in.bin", true],
    ]);
    expect((await api.bytes(output(answer, "twin.bin"))).toString()).toBe(CONTENT);
  });

  test("an emptied input is a changed one", async () => {
    const ref = await api.stage("in.bin", CONTENT);
    const answer = await api.exec({ lang: "bash", code: ": > in.bin", files: [ref] });
    expect(output(answer, "in.bin").modified_from?.id).toBe(ref.id);
    expect(await api.bytes(output(answer, "in.bin"))).toHaveLength(0);
  });
});

describe("read-only inputs", () => {
  test.each([
    ["written to", "echo x >> ro.txt; chmod 644 ro.txt; chown 1000 ro.txt"],
    ["removed", "rm -f ro.txt"],
    ["renamed", "mv -f ro.txt other.txt && rm other.txt"],
    ["replaced by a file", "rm -f ro.txt; echo replaced > ro.txt"],
    ["replaced by a directory", "rm -f ro.txt; mkdir ro.txt"],
    ["replaced by a link", "rm -f ro.txt; ln -s /etc/passwd ro.txt"],
  ])("%s: it comes back as the inherited original", async (_name, code) => {
    const ref = await api.stage("ro.txt", "original", { read_only: "true" });
    const answer = await api.exec({ lang: "bash", code: `${code}\nexit 0`, files: [ref] });
    expect(answer.files.filter(({ name }) => name === "ro.txt")).toMatchObject([
      { ...ref, kind: "user", inherited: true },
    ]);
    expect(answer.deleted_files).toBeUndefined();
    const stored = await api.download(ref);
    expect([stored.text, stored.headers.get("x-read-only")]).toEqual(["original", "true"]);
  });

  test("the program sees a file of somebody else that it can only read", async () => {
    const ref = await api.stage("ro.txt", "original", { read_only: "true" });
    const code = `stat -c '%a' ro.txt; test -O ro.txt || echo "not mine"; cat ro.txt; echo x > ro.txt`;
    const answer = await api.exec({ lang: "bash", code, files: [ref] });
    expect(answer.stdout).toBe("444\nnot mine\noriginal");
    expect(answer.stderr).toContain("Permission denied");
  });
});

describe("damaged storage", () => {
  const objectPath = ({ id, storage_session_id }: FileRef) =>
    join(system.instance.dataDir, "objects", "sessions", storage_session_id, id);

  const DAMAGES: [name: string, damage: (path: string) => void][] = [
    ["one byte differs", (path) => flipByte(path, CONTENT.length / 2)],
    ["bytes are missing", (path) => truncateSync(path, CONTENT.length / 2)],
    ["the object is gone", (path) => rmSync(path)],
  ];

  test.each(DAMAGES)("%s: the request fails, the input is named, nothing runs", async (_name, damage) => {
    const good = await api.stage("good.txt", "good");
    const bad = await api.stage("bad input.bin", CONTENT);
    damage(objectPath(bad));
    const code = "echo ran > /mnt/data/ran.txt; cat *";
    const answer = await api.tryExec({ lang: "bash", code, files: [good, bad] });
    expect([answer.status, answer.refusal.error]).toEqual([502, "input_unavailable"]);
    expect(JSON.stringify(answer.refusal)).toContain("bad input.bin");
    expect(answer.text).not.toContain(system.instance.dataDir);
    expect((await api.exec({ lang: "bash", code: "cat good.txt", files: [good] })).stdout).toBe("good");
  });

  test("a damaged file is never served whole", async () => {
    const bad = await api.stage("bad.bin", CONTENT);
    flipByte(objectPath(bad), 10);
    await expect(api.bytes(bad)).rejects.toThrow();
  });

  test("a damaged input among many good ones is named", async () => {
    const refs = (
      await api.upload(Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`f${at}`, `${at}`])))
    ).map((file) => refTo(file));
    rmSync(objectPath(refs[17] as FileRef));
    const { status, refusal } = await api.tryExec({ lang: "bash", code: "true", files: refs });
    expect([status, refusal.error]).toEqual([502, "input_unavailable"]);
    expect(JSON.stringify(refusal)).toMatch(/\bf17\b/);
  });
});

describe("a large input that was used before", () => {
  const LARGE = Buffer.alloc(3_000_000, "0123456789abcdef\n");
  const code = "sha256sum data.bin; stat -c %a data.bin; echo x >> data.bin";

  test.skipIf(IN_GUESTS)(
    "comes from the runner's copy, is the same, and is the caller's while it exists",
    async () => {
      const ref = await api.stage("data.bin", LARGE);
      const readOnly = await api.stage("data.bin", LARGE, { read_only: "true" });
      for (const file of [ref, readOnly]) {
        const before = await inputsFromCopies(system);
        const first = await api.exec({ lang: "bash", code, files: [file] });
        expect(await inputsFromCopies(system)).toBe(before);
        const second = await api.exec({ lang: "bash", code, files: [file] });
        expect(await inputsFromCopies(system)).toBe(before + 1);
        expect(first.stdout).toMatch(new RegExp(`^${sha256(LARGE)} `));
        expect([second.stdout, second.stderr]).toEqual([first.stdout, first.stderr]);
        expect(second.files.map(({ inherited }) => inherited)).toEqual(
          first.files.map(({ inherited }) => inherited),
        );
      }
      expect((await api.send("DELETE", deletePath(ref))).status).toBe(200);
      const gone = await api.tryExec({ lang: "bash", code, files: [ref] });
      expect(gone.status).toBe(403);
    },
  );

  test("is right when the copy was spoiled", async () => {
    const ref = await api.stage("data.bin", LARGE);
    const small = await api.stage("small.txt", "small");
    const run = () =>
      api.exec({ lang: "bash", code: "sha256sum data.bin; cat small.txt", files: [ref, small] });
    const first = await run();
    const pid = system.pid(RUNNER);
    for (const path of copiesOf(pid)) writeFileSync(path, "spoiled", { flag: "r+" });
    expect((await run()).stdout).toBe(first.stdout);
    expect(first.stdout).toBe(`${sha256(LARGE)}  data.bin\nsmall`);
    expect(system.pid(RUNNER)).toBe(pid);
  });
});

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

function flipByte(path: string, at: number): void {
  const byte = readFileSync(path)[at] ?? 0;
  const file = openSync(path, "r+");
  writeSync(file, Buffer.from([byte ^ 0xff]), 0, 1, at);
  closeSync(file);
}
