import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findLanguage } from "@svc/contracts/languages";
import { afterAll, describe, expect, it } from "vitest";
import { languageOf } from "../../src/exec/language.ts";
import { makeFolder } from "../../src/system/folders.ts";
import { listenerOf, listenProblem } from "../../src/system/ports.ts";
import { identify, isAlive, signalProcess } from "../../src/system/process.ts";
import { run, shown } from "../../src/system/run.ts";
import { printable } from "../../src/terminal.ts";

describe("languageOf", () => {
  it.each([
    ["a/plot.py", "py"],
    ["x.SH", "bash"],
    ["index.mjs", "js"],
    ["main.ts", "ts"],
    ["main.R", "r"],
  ])("%s is %s", (path, lang) => expect(languageOf({ path })).toBe(lang));

  it("knows no language of other files", () => {
    for (const path of ["Makefile", "a.txt", ".py", "py"]) expect(languageOf({ path })).toBeUndefined();
  });

  it("takes code without a file for Python", () => {
    expect([languageOf({ code: "" }), languageOf({ path: "-" })]).toEqual(["py", "py"]);
  });

  it("names only languages of the interface", () => {
    for (const path of [
      "a.py",
      "a.sh",
      "a.js",
      "a.ts",
      "a.c",
      "a.cc",
      "a.java",
      "a.php",
      "a.rs",
      "a.go",
      "a.d",
      "a.f90",
      "a.r",
    ]) {
      expect(findLanguage(languageOf({ path }) ?? "none")?.lang).toBe(languageOf({ path }));
    }
  });
});

describe("printable", () => {
  it("shows control characters instead of obeying them", () => {
    expect(printable("\u001b[2Jx\ty\r\u009b")).toBe("\\x1b[2Jx\ty\\x0d\\x9b");
  });
});

describe("shown", () => {
  it("quotes what a shell would not take as it is", () => {
    expect(shown(["a", "b c", "it's", "x=1", ""])).toBe(`a 'b c' 'it'\\''s' x=1 ''`);
  });
});

describe("run", () => {
  it("answers the exit code and the last lines of both streams", async () => {
    const { code, tail } = await run(["bash", "-c", "echo out; echo err >&2; exit 3"]);
    expect(code).toBe(3);
    expect(tail.sort()).toEqual(["err", "out"]);
  });

  it("answers 127 for a program that does not exist", async () => {
    expect((await run(["/no/such/program"])).code).toBe(127);
  });
});

describe("processes", () => {
  it("are known by pid and start time together", () => {
    const self = identify(process.pid);
    expect(self).toBeDefined();
    if (self === undefined) return;
    expect(isAlive(self)).toBe(true);
    const impostor = { ...self, startTicks: self.startTicks + 1 };
    expect(isAlive(impostor)).toBe(false);
    expect(signalProcess(impostor, "SIGKILL")).toBe(false);
  });

  it("are absent when their pid is free", () => expect(identify(2 ** 22 + 1)).toBeUndefined());
});

describe("listenerOf", () => {
  it("names the process that holds a port by its command line", async () => {
    const { createServer } = await import("node:net");
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const [program = ""] = readFileSync("/proc/self/cmdline", "latin1").split("\0");
    expect(listenerOf(port)).toMatch(new RegExp(`^pid ${process.pid} \\(`));
    expect(listenerOf(port)).toContain(printable(program).slice(0, 100));
    expect(await listenProblem("127.0.0.1", port)).toBe("EADDRINUSE");
    await new Promise((resolve) => server.close(resolve));
    expect(listenerOf(port)).toBeUndefined();
  });
});

describe("makeFolder", () => {
  const base = mkdtempSync(join(tmpdir(), "svc-folders-"));
  afterAll(() => rmSync(base, { recursive: true }));

  it("makes a folder with those above it, and says whether it is new", () => {
    expect(makeFolder(join(base, "a/b/c"), 0o700)).toBe(true);
    expect(statSync(join(base, "a/b/c")).mode & 0o777).toBe(0o700);
    expect(makeFolder(join(base, "a/b/c"))).toBe(false);
    expect(makeFolder(join(base, "a/b"))).toBe(false);
  });

  it("refuses what cannot be a folder, and always ends", () => {
    writeFileSync(join(base, "file"), "");
    expect(() => makeFolder(join(base, "file"))).toThrow("exists and is not a folder");
    expect(() => makeFolder(join(base, "file/below"))).toThrow("exists and is not a folder");
    expect(() => makeFolder("/proc/svc/data")).toThrow("the folder /proc/svc cannot be made (ENOENT)");
  });
});
