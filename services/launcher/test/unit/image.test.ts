import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkImage } from "../../src/guests/image.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-guest-image-"));
  for (const name of ["vmlinuz", "initrd", "system.erofs"]) writeFileSync(join(folder, name), `the ${name}`);
  const sums = execFileSync("sha256sum", ["vmlinuz", "initrd", "system.erofs"], { cwd: folder });
  writeFileSync(join(folder, "SHA256SUMS"), sums);
});
afterEach(() => rmSync(folder, { recursive: true }));

test("an image as it was built is taken", async () => {
  await checkImage(folder);
});

test.each(["vmlinuz", "initrd", "system.erofs"])("a changed %s is refused by name", async (name) => {
  writeFileSync(join(folder, name), `the ${name}!`);
  await expect(checkImage(folder)).rejects.toThrow(`${name} of the guest's image is damaged`);
});

test("a file without a hash is refused", async () => {
  writeFileSync(join(folder, "SHA256SUMS"), "");
  await expect(checkImage(folder)).rejects.toThrow("damaged");
});
