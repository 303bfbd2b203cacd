/** What a start finds of other owners in a component's folder, and that it looks at a part of a large one. */
import { chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { foreignEntry } from "../../src/supervisor/ownership.ts";

const [OWN, OTHER] = [54_321, 12_345];
let folder: string;
const own = (path: string) => chownSync(path, OWN, OWN);
const make = (...names: string[]) => {
  const path = join(folder, ...names);
  mkdirSync(path);
  own(path);
  return path;
};
const write = (...names: string[]) => {
  const path = join(folder, ...names);
  writeFileSync(path, "");
  own(path);
  return path;
};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-owners-"));
  own(folder);
  for (const name of ["incoming", "pending", "sessions"]) make(name);
});
afterEach(() => rmSync(folder, { recursive: true }));

it("a folder of one owner is in order, whatever links lead out of it", () => {
  make("sessions", "one");
  write("sessions", "one", "file");
  symlinkSync("/etc/passwd", join(folder, "sessions/link"));
  symlinkSync("/etc", join(folder, "elsewhere"));
  expect(foreignEntry(folder, OWN)).toBeUndefined();
});

it("one file or folder of another owner is found at each depth", () => {
  const paths = [
    write("file"),
    join(folder, "pending"),
    make("sessions", "one"),
    write("sessions", "one", "file"),
    make("sessions", "one", "deep"),
    write("sessions", "one", "deep", "file"),
  ];
  for (const path of paths) {
    chownSync(path, OTHER, OTHER);
    expect(foreignEntry(folder, OWN)).toBe(path);
    own(path);
  }
  expect(foreignEntry(folder, OWN)).toBeUndefined();
});

it("a restore without owners is found among many objects, in whatever order they lie", () => {
  for (let number = 0; number < 2000; number++) {
    make("sessions", `s${number}`);
    const path = write("sessions", `s${number}`, "file");
    if (number % 4 === 0) chownSync(path, OTHER, OTHER);
  }
  expect(foreignEntry(folder, OWN)).toMatch(/\/s\d+\/file$/);
});
