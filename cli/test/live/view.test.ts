/** The mount namespace that shows components what they need below closed folders: folders, and single files. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openView } from "@svc/cli/supervisor/view";
import { afterEach, beforeEach, expect, it } from "vitest";

let folder: string;
let closed: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-view-"));
  execFileSync("chmod", ["755", folder]);
  closed = join(folder, "closed");
  mkdirSync(join(closed, "keys"), { recursive: true });
  for (const name of ["ca.pem", "secret", "keys/one.pem"])
    writeFileSync(join(closed, name), name, { mode: 0o644 });
  execFileSync("chmod", ["700", closed]);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** As a user who may not enter the closed folder. */
const seen = (enter: readonly string[], path: string) => {
  const [program = "", ...words] = [...enter, "/usr/bin/setpriv", "--reuid=54321", "--clear-groups", "--"];
  return execFileSync(program, [...words, "/bin/sh", "-c", 'cat "$0" 2>&1 || true', path], {
    encoding: "utf8",
  });
};

it.each([
  ["a folder and a file beside it", ["keys", "ca.pem"]],
  ["a file in a folder that is shown, too", ["keys", "ca.pem", "keys/one.pem"]],
  ["the file before its folder", ["ca.pem", "keys/one.pem", "keys"]],
])("shows %s, and nothing else", async (_what, names) => {
  const needed = names.map((name) => join(closed, name));
  const view = await openView(needed, join(folder, "stage"));
  try {
    expect(seen(view.enter, join(closed, "ca.pem"))).toBe("ca.pem");
    expect(seen(view.enter, join(closed, "keys/one.pem"))).toBe("keys/one.pem");
    expect(seen(view.enter, join(closed, "secret"))).toContain("No such file");
  } finally {
    view.close();
  }
  expect(readFileSync(join(closed, "keys/one.pem"), "utf8")).toBe("keys/one.pem");
  expect(readFileSync(join(closed, "ca.pem"), "utf8")).toBe("ca.pem");
});
