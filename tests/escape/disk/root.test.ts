/** The workspace's own root, removed, replaced, closed and moved: what lies in it comes back, or nothing does. */

import { output } from "@svc/test-kit/system/api";
import { describe, expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";
import { attacker } from "../support/running.ts";

test("the root of the workspace cannot be removed, renamed, replaced or covered", async () => {
  const seen = await evidence<Record<string, string>>(`
os.mkdir("/tmp/other"); os.mkdir("sub")
show(dict(
    removed=attempt(lambda: os.rmdir("/mnt/data")),
    unlinked=attempt(lambda: os.unlink("/mnt/data")),
    renamed=attempt(lambda: os.rename("/mnt/data", "/mnt/other")),
    away=attempt(lambda: os.rename("/mnt/data", "/tmp/data")),
    over=attempt(lambda: os.rename("/tmp/other", "/mnt/data")),
    within=attempt(lambda: os.rename("/mnt/data/sub", "/mnt/data")),
    exchanged=call(316, -100, ctypes.c_char_p(b"/mnt/data"), -100, ctypes.c_char_p(b"/tmp/other"), 2),
    linked=attempt(lambda: os.symlink("/tmp", "/mnt/data")),
    parent=attempt(lambda: os.mkdir("/mnt/more")),
    mounted=call(165, ctypes.c_char_p(b"none"), ctypes.c_char_p(b"/mnt/data"), ctypes.c_char_p(b"tmpfs"), 0, 0),
    bound=call(165, ctypes.c_char_p(b"/etc"), ctypes.c_char_p(b"/mnt/data"), 0, 4096, 0),
    unmounted=call(166, ctypes.c_char_p(b"/mnt/data"), 2),
    pivoted=call(155, ctypes.c_char_p(b"/mnt/data"), ctypes.c_char_p(b"/mnt/data/sub")),
))
os.rmdir("sub")`);
  expect(seen).toEqual({
    removed: expect.stringMatching(/^(EBUSY|EROFS)$/),
    unlinked: expect.stringMatching(/^(EISDIR|EBUSY|EROFS)$/),
    renamed: expect.stringMatching(/^(EBUSY|EROFS)$/),
    away: "EXDEV",
    over: "EXDEV",
    within: expect.stringMatching(/^(EXDEV|EBUSY|ENOTEMPTY)$/),
    exchanged: "EXDEV",
    linked: "EEXIST",
    parent: "EROFS",
    mounted: "ENOSYS",
    bound: "ENOSYS",
    unmounted: "ENOSYS",
    pivoted: "ENOSYS",
  });
});

describe("the outputs come from the workspace", () => {
  test("after all of it was removed and made anew", async () => {
    const input = await attacker.stage("input.txt", "as it was");
    const code = "rm -rf /mnt/data/* /mnt/data/.[!.]*; ls -A; echo new > input.txt; echo more > more.txt";
    const answer = await hostile({ lang: "bash", code, files: [input] });
    expect(answer).toMatchObject({ code: 0, status: null, stdout: "" });
    expect((await attacker.bytes(output(answer, "input.txt"))).toString()).toBe("new\n");
    expect(answer.files.map(({ name }) => name)).toEqual(["input.txt", "more.txt"]);
    expect(output(answer, "input.txt").modified_from?.id).toBe(input.id);
    expect((await attacker.bytes(input)).toString()).toBe("as it was");
  });

  test("after its root was closed to everybody", async () => {
    const answer = await hostile({ lang: "bash", code: "echo kept > kept.txt; chmod 0 kept.txt .; ls" });
    expect(answer).toMatchObject({ stdout: "", code: 2 });
    expect((await attacker.bytes(output(answer, "kept.txt"))).toString()).toBe("kept\n");
  });

  test("when the program ends in another folder, or in one that is gone", async () => {
    const code =
      "echo kept > kept.txt; mkdir gone; cd gone; rmdir /mnt/data/gone; echo lost > here.txt; cd /tmp; echo no > no.txt";
    const answer = await hostile({ lang: "bash", code });
    expect(answer.files.map(({ name }) => name)).toEqual(["kept.txt"]);
    expect(answer.stderr).toContain("No such file or directory");
  });

  test("when folders of an input's path were replaced by links that lead out", async () => {
    const input = await attacker.stage("a/b/c.txt", "inner");
    const code =
      "rm -r a; mkdir /tmp/b; echo outer > /tmp/b/c.txt; ln -s /tmp a; cat a/b/c.txt; ln -s /etc etc";
    const answer = await hostile({ lang: "bash", code, files: [input] });
    expect(answer).toMatchObject({ stdout: "outer\n", code: 0, files: [], deleted_files: ["a/b/c.txt"] });
  });

  test("when its files are folders now, and its folders files", async () => {
    const [file, below] = [await attacker.stage("x", "file"), await attacker.stage("d/y", "below")];
    const code = "rm x; mkdir -p x/y; echo in > x/y/z; rm -r d; echo flat > d";
    const answer = await hostile({ lang: "bash", code, files: [file, below] });
    expect(answer.files.map(({ name }) => name)).toEqual(["d", "x/y/z"]);
    expect(answer.deleted_files?.toSorted()).toEqual(["d/y", "x"]);
  });
});
