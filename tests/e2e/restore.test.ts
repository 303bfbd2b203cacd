/** A backup as docs/operate.md describes it, restored into an empty folder of another path: callers' files are there. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { UploadedFile } from "@svc/contracts";
import { Api, refTo } from "@svc/test-kit/system/api";
import { startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

const CONTENT = Buffer.from("kept \u0000\u00ff");
let folder: string;
let archive: string;
let file: UploadedFile;

/** A folder for a copy; the components' users pass through it. */
function dataFolder(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  chmodSync(path, 0o711);
  return path;
}

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-backup-")));
  chmodSync(folder, 0o711);
  const data = dataFolder("data");
  const system = await startSystem({ env: { SVC_DATA_DIR: data } });
  const [stored] = await new Api(system.url).upload({ "kept.bin": CONTENT }).finally(system.stop);
  file = stored as UploadedFile;
  archive = join(folder, "backup.tar");
  execFileSync("tar", ["-C", data, "-cpf", archive, "objects", "redis", "secrets.env"]);
  rmSync(data, { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ["with Redis", ["objects", "redis", "secrets.env"]],
  ["of the objects alone", ["objects"]],
])("files come back from a backup %s, byte by byte and to their owner", async (name, parts) => {
  const data = dataFolder(name.replaceAll(" ", "-"));
  execFileSync("tar", ["-C", data, "-xpf", archive, ...parts]);
  const system = await startSystem({ env: { SVC_DATA_DIR: data } });
  try {
    const api = new Api(system.url);
    expect((await api.bytes(file)).equals(CONTENT)).toBe(true);
    const code = "import sys; sys.stdout.buffer.write(open('kept.bin', 'rb').read()[:4])";
    expect((await api.exec({ lang: "py", code, files: [refTo(file)] })).stdout).toBe("kept");
  } finally {
    expect(await system.stop()).toEqual([]);
  }
});
