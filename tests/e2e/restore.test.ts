/** A backup as docs/operate.md describes it, restored into an empty folder of another path: callers' files are there. */
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Api, refTo } from "@svc/test-kit/system/api";
import { startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

let folder: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-backup-")));
  chmodSync(folder, 0o711);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Copies what is worth keeping while nothing runs; `data` is the folder of a copy. */
function backup(data: string): string {
  const archive = join(folder, "backup.tar");
  execFileSync("tar", ["-C", data, "-cpf", archive, "objects", "redis", "secrets.env"]);
  return archive;
}

test.each([
  ["with Redis", true],
  ["without Redis", false],
])("files come back from a backup %s, byte by byte and to their owner", async (name, hasRedis) => {
  const content = Buffer.from(`kept ${name} \u0000\u00ff`);
  const first = await startSystem();
  const kept = join(folder, `kept-${hasRedis}`);
  let left: string[];
  let file: Awaited<ReturnType<Api["upload"]>>[number] | undefined;
  try {
    [file] = await new Api(first.url).upload({ "kept.bin": content });
  } finally {
    // The folder goes with its copy, so the files are taken while it runs: an object never changes.
    cpSync(first.instance.dataDir, kept, {
      recursive: true,
      preserveTimestamps: true,
      filter: (path) => !/\.sock$/.test(path),
    });
    left = await first.stop();
  }
  expect(left).toEqual([]);
  if (file === undefined) throw new Error("nothing was stored");

  const restored = join(folder, `restored-${hasRedis}`);
  execFileSync("mkdir", ["-m", "711", restored]);
  execFileSync("tar", ["-C", restored, "-xpf", backup(kept)]);
  if (!hasRedis) rmSync(join(restored, "redis"), { recursive: true });
  const second = await startSystem({ env: { SVC_DATA_DIR: restored } });
  try {
    const api = new Api(second.url);
    expect((await api.bytes(file)).equals(content)).toBe(true);
    const code = "import sys; sys.stdout.buffer.write(open('kept.bin', 'rb').read()[:4])";
    expect((await api.exec({ lang: "py", code, files: [refTo(file)] })).stdout).toBe("kept");
  } finally {
    expect(await second.stop()).toEqual([]);
  }
});
