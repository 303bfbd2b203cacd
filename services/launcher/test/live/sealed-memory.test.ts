/** Memory that guests go on from, and that none of them can change for the others. */
import { execFileSync } from "node:child_process";
import {
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readlinkSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processesWith } from "@svc/test-kit/system/processes";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SealedMemory } from "../../src/guests/sealed-memory.ts";

const SOURCE = join(import.meta.dirname, "../../guest/sealed-memory.c");

let folder: string;
let program: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-sealed-memory-"));
  program = join(folder, "sealed-memory");
  execFileSync("cc", ["-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const running = () => processesWith(program);

const read = (file: number) => {
  const bytes = Buffer.alloc(6);
  readSync(file, bytes, 0, bytes.length, 0);
  return bytes.toString();
};

test("once it is sealed, no descriptor can change what was written before", async () => {
  const memory = await SealedMemory.open(program);
  writeSync(memory.descriptor, "before", 0);
  const opened = openSync(`/proc/self/fd/${memory.descriptor}`, "r+");
  await memory.seal();
  const later = openSync(`/proc/self/fd/${memory.descriptor}`, "r+");
  for (const file of [memory.descriptor, opened, later]) {
    expect(() => writeSync(file, "after!", 0)).toThrow("EPERM");
    expect(() => ftruncateSync(file, 0)).toThrow("EPERM");
    expect(() => ftruncateSync(file, 1 << 20)).toThrow("EPERM");
    expect(read(file)).toBe("before");
  }
  for (const file of [opened, later]) closeSync(file);
  memory.close();
});

test("it has no name, and what made it has ended", async () => {
  const memory = await SealedMemory.open(program);
  expect(readlinkSync(`/proc/self/fd/${memory.descriptor}`)).toMatch(/^\/memfd:microvm \(deleted\)$/);
  await memory.seal();
  memory.close();
  expect(running()).toEqual([]);
});

test("what is given up before it is sealed leaves nothing", async () => {
  const memory = await SealedMemory.open(program);
  expect(running()).toHaveLength(1);
  memory.close();
  await expect.poll(running).toEqual([]);
});

test("a program that does not start, or ends, is an error", async () => {
  await expect(SealedMemory.open(join(folder, "missing"))).rejects.toThrow("ENOENT");
  await expect(SealedMemory.open("/bin/false")).rejects.toThrow("/bin/false ended: 1");
});
