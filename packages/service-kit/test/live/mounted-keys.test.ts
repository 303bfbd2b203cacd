/** A file of API keys as Kubernetes mounts a Secret: root's, behind links, and readable for the group of a user other than root. */
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

const ID = 64_001;
const READER = join(import.meta.dirname, "../support/reader.ts");
const REFUSED = "it can be read by others; run: chmod 600 it";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-test-mounted-"));
  chmodSync(folder, 0o755);
});
afterAll(() => rmSync(folder, { recursive: true }));

let mounted = 0;
function mount(owner: number, group: number, mode: number): string {
  const at = join(folder, String(mounted++));
  mkdirSync(join(at, "..2026_11_26"), { recursive: true });
  const real = join(at, "..2026_11_26/api-keys.jsonl");
  writeFileSync(real, "");
  chownSync(real, owner, group);
  chmodSync(real, mode);
  symlinkSync("..2026_11_26", join(at, "..data"));
  symlinkSync("..data/api-keys.jsonl", join(at, "api-keys.jsonl"));
  return join(at, "api-keys.jsonl");
}

function readAs(id: number, paths: readonly string[]): string[] {
  const out = execFileSync(process.execPath, [READER, String(id), ...paths], { encoding: "utf8" });
  return JSON.parse(out) as string[];
}

it("is read by the group's only user", () => {
  expect(readAs(ID, [mount(0, ID, 0o440), mount(0, ID, 0o640), mount(ID, ID, 0o400)])).toEqual([
    "read",
    "read",
    "read",
  ]);
});

it("is refused where the group may write, others may read, or the owner is a user", () => {
  const paths = [mount(0, ID, 0o460), mount(0, ID, 0o444), mount(ID, ID, 0o440), mount(0, ID, 0o450)];
  expect(readAs(ID, paths)).toEqual(paths.map(() => REFUSED));
});

it("is refused by root itself, whose group may have others in it", () => {
  expect(readAs(0, [mount(0, 0, 0o440)])).toEqual([REFUSED]);
});
