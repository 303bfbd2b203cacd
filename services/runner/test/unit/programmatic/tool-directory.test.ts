import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ToolDirectories } from "@svc/runner/programmatic/tool-directory";
import { afterAll, expect, it } from "vitest";

const base = mkdtempSync(join(tmpdir(), "svc-tools-"));
mkdirSync(join(base, "0"));
afterAll(() => rmSync(base, { recursive: true }));
const directories = new ToolDirectories(base, "/run/tools/socket");

it("a file that cannot be written is a failed preparation: no file of the program stays, and the next one is prepared", () => {
  const blocked = join(base, "0/second");
  mkdirSync(blocked);
  writeFileSync(join(blocked, "full"), "");
  const refused = expect.objectContaining({ code: "sandbox_setup_failed", status: 503 });
  expect(() => directories.claim(0, { first: "1", second: "2" })).toThrow(refused);
  expect(readdirSync(join(base, "0"))).toEqual(["second"]);
  rmSync(blocked, { recursive: true });
  const directory = directories.claim(0, { first: "1", second: "2" });
  expect(readdirSync(join(base, "0")).sort()).toEqual(["first", "second"]);
  directory.release();
  expect(readdirSync(join(base, "0"))).toEqual([]);
});
