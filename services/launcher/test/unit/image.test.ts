import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkImage, holdImage } from "../../src/guests/image.ts";

const FILES = ["vmlinuz", "initrd", "system.erofs", "sealed-memory"];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-guest-image-"));
  for (const name of FILES) writeFileSync(join(folder, name), `the ${name}`);
  const sums = execFileSync("sha256sum", FILES, { cwd: folder });
  writeFileSync(join(folder, "SHA256SUMS"), sums);
});
afterEach(() => rmSync(folder, { recursive: true }));

test("an image as it was built is taken", async () => {
  await checkImage(folder);
});

test.each(FILES)("a changed %s is refused by name", async (name) => {
  writeFileSync(join(folder, name), `the ${name}!`);
  await expect(checkImage(folder)).rejects.toThrow(`${name} of the guest's image is damaged`);
});

test("a file without a hash is refused", async () => {
  writeFileSync(join(folder, "SHA256SUMS"), "");
  await expect(checkImage(folder)).rejects.toThrow("damaged");
});

test("files that a build puts in their place change nothing for a launcher that runs", async () => {
  const image = holdImage(folder);
  writeFileSync(join(folder, "building"), "another system");
  renameSync(join(folder, "building"), join(folder, "system.erofs"));
  expect(readFileSync(join(image.folder, "system.erofs"), "utf8")).toBe("the system.erofs");
  await checkImage(image.folder);
  image.release();
  expect(readdirSync(folder).filter((name) => name.startsWith("."))).toEqual([]);
});

test("what a launcher that was killed has left is removed by the next, and that of one that runs is not", () => {
  // No process has it: the kernel's highest is 2^22.
  for (const pid of [5_000_000, 1]) mkdirSync(join(folder, `.launcher-${pid}`));
  const image = holdImage(folder);
  expect(readdirSync(folder).filter((name) => name.startsWith("."))).toEqual(
    [".launcher-1", `.launcher-${process.pid}`].sort(),
  );
  image.release();
});

test("a folder that lacks a file is refused, and nothing is left in it", () => {
  rmSync(join(folder, "initrd"));
  expect(() => holdImage(folder)).toThrow("initrd");
  expect(readdirSync(folder).filter((name) => name.startsWith("."))).toEqual([]);
});
