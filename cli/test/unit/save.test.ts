import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { saveOutput } from "../../src/exec/save.ts";

let folder: string;
let out: string;
const content = Buffer.from("new");

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-save-"));
  out = join(folder, "out");
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("saveOutput", () => {
  it("makes the folders of a name and writes the bytes", async () => {
    const path = await saveOutput(out, "a/b/c.bin", content, false);
    expect(path).toBe(join(out, "a/b/c.bin"));
    expect(readFileSync(path, "utf8")).toBe("new");
  });

  it.each(["../x", "a/../../x", "/etc/x", "", "a//b", "a\\b", "x\u0000y", "a/./b", "line\nbreak"])(
    "refuses the name %j",
    async (name) => {
      await expect(saveOutput(out, name, content, true)).rejects.toThrow(/output name/);
      expect(existsSync(join(folder, "x"))).toBe(false);
    },
  );

  it("does not write through a link to a folder outside", async () => {
    mkdirSync(out);
    mkdirSync(join(folder, "elsewhere"));
    symlinkSync(join(folder, "elsewhere"), join(out, "sub"));
    await expect(saveOutput(out, "sub/x", content, true)).rejects.toThrow(/is not a folder/);
    expect(existsSync(join(folder, "elsewhere/x"))).toBe(false);
  });

  it("does not write through a link to a file, even when forced", async () => {
    mkdirSync(out);
    writeFileSync(join(folder, "target"), "old");
    symlinkSync(join(folder, "target"), join(out, "x"));
    await expect(saveOutput(out, "x", content, true)).rejects.toThrow(/not a regular file/);
    expect(readFileSync(join(folder, "target"), "utf8")).toBe("old");
  });

  it("replaces an existing file only when asked to", async () => {
    mkdirSync(out);
    writeFileSync(join(out, "x"), "old and longer");
    await expect(saveOutput(out, "x", content, false)).rejects.toThrow(/exists already/);
    expect(readFileSync(join(out, "x"), "utf8")).toBe("old and longer");
    await saveOutput(out, "x", content, true);
    expect(readFileSync(join(out, "x"), "utf8")).toBe("new");
  });

  it("takes the given folder itself through a link: that one is the user's", async () => {
    mkdirSync(join(folder, "real"));
    symlinkSync(join(folder, "real"), out);
    await saveOutput(out, "x", content, false);
    expect(readFileSync(join(folder, "real/x"), "utf8")).toBe("new");
  });
});
