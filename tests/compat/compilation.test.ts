/** Compilers run user code too: each in a jail of its own, with limits of its own, and nothing of it is an output. */

import { Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let system: System;
let api: Api;

beforeAll(async () => {
  system = await startSystem({
    env: {
      ...OPEN_LIMITS,
      SVC_LANGUAGES: "all",
      SANDBOX_COMPILE_TIMEOUT: "90000",
      SANDBOX_LIMIT_OVERRIDES: JSON.stringify({
        d: { compile_timeout: 1500 },
        rust: { compile_memory_limit: 400 << 20 },
      }),
    },
  });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

describe("limits of the compiler", () => {
  const KILLED = { code: 137, signal: "SIGKILL", stdout: "", wall_time: 0 };

  test("its time is over: TO, and the program is not run", async () => {
    const loop = "int f() { int i; while (true) { i++; i--; } }";
    const answer = await api.exec({ lang: "d", code: `${loop}\nenum x = f();\nvoid main() {}` });
    expect(answer).toMatchObject({ ...KILLED, status: "TO", message: "Time limit exceeded" });
    const notes = "[sandbox] Time limit exceeded (1.5 s)\n[sandbox] The compiler did not finish\n";
    expect(answer.stderr.endsWith(notes)).toBe(true);
    expect(answer.timings.setup_ms).toBeGreaterThanOrEqual(1500);
  });

  test("its memory is used up: ML, and the program is not run", async () => {
    const constant = (mebibytes: number) =>
      `static BIG: [u8; ${mebibytes} << 20] = [7; ${mebibytes} << 20];\nfn main() { println!("{}", BIG[9]); }`;
    const answer = await api.exec({ lang: "rs", code: constant(800) });
    expect(answer).toMatchObject({ ...KILLED, status: "ML", message: "Out of memory", memory: 0 });
    const notes = "[sandbox] Out of memory (limit 400 MiB)\n[sandbox] The compiler did not finish\n";
    expect(answer.stderr.endsWith(notes)).toBe(true);
    expect(await api.exec({ lang: "rs", code: constant(4) })).toMatchObject({ code: 0, stdout: "7\n" });
  });

  test("its text is bounded like the output of a program", async () => {
    const answer = await api.exec({
      lang: "c",
      code: `int main(void) { return 0; }\n${"x y;\n".repeat(5000)}`,
    });
    expect(answer).toMatchObject({ status: "CE", message: "Compilation failed", stdout: "", wall_time: 0 });
    expect(Buffer.byteLength(answer.stderr)).toBeLessThan(65_536 + 200);
    expect(answer.stderr).toMatch(
      /\[sandbox\] stderr length exceeded \(64 KiB kept of [^\n]*\)\n\[sandbox\] Compilation failed\n$/,
    );
  });

  test("the time of the run does not count for it, and the other way round", async () => {
    const slow = await api.exec({
      lang: "cpp",
      code: '#include <bits/stdc++.h>\nint main() { puts("ran"); }',
      run_timeout: 400,
    });
    expect(slow).toMatchObject({ code: 0, status: null, stdout: "ran\n" });
    expect(slow.timings.setup_ms).toBeGreaterThan(400);
    const endless = await api.exec({ lang: "c", code: "int main(void) { for (;;) ; }", run_timeout: 300 });
    expect(endless).toMatchObject({ code: 137, status: "TO" });
    expect(endless.stderr).toBe("[sandbox] Time limit exceeded (300 ms)\n");
    expect(endless.wall_time).toBeGreaterThanOrEqual(300);
  });

  test("a program that is too large is refused as one that does not compile", async () => {
    const answer = await api.exec({ lang: "c", code: "char big[70 << 20] = {1};\nint main(void) {}" });
    expect(answer).toMatchObject({ status: "CE", code: 1, message: "Compilation failed" });
    expect(answer.stderr).toContain("[sandbox] The compiled program is larger than 64 MiB\n");
  });
});

describe("what the program sees and leaves", () => {
  const run = (commands: string) => `#include <stdlib.h>\nint main(void) { return system("${commands}"); }`;

  test("its source stands beside its inputs; the compiled program is hidden and no output", async () => {
    const input = await api.stage("in.txt", "x");
    const code = run("ls -A; ls -l .build | tail -n +2 | cut -c 1-10; touch .build/more made");
    const answer = await api.exec({ lang: "c", code, files: [input] });
    expect(answer).toMatchObject({ code: 0, stdout: ".build\nin.txt\nmain.c\n-rwxr-xr-x\n", stderr: "" });
    expect(answer.files.map(({ name }) => name)).toEqual(["made", "in.txt"]);
  });

  test("a program may remove everything, itself too", async () => {
    const answer = await api.exec({ lang: "c", code: run("rm -r .build main.c; ls -A") });
    expect(answer).toMatchObject({ code: 0, stdout: "", stderr: "", files: [] });
    expect(answer).not.toHaveProperty("deleted_files");
  });

  test("an input in the place of the compiled program keeps it, and comes back", async () => {
    const input = await api.stage("program", "mine");
    const answer = await api.exec({
      lang: "c",
      code: run("cat .build/program; ls -A"),
      files: [{ ...input, name: ".build/program" }],
    });
    expect(answer).toMatchObject({ code: 0, stdout: "mine.build\n.build_1\nmain.c\n" });
    expect(answer.files).toMatchObject([{ name: ".build/program", id: input.id, inherited: true }]);
  });

  test("an input named like the entry stays, and the entry gets another name", async () => {
    const input = await api.stage("main.c", "not a program");
    const code = run("cat main.c");
    const answer = await api.exec({ lang: "c", code, files: [input] });
    expect(answer).toMatchObject({ code: 0, stdout: "not a program", stderr: "" });
  });

  test("Java finds classes of the workspace, and jars at its top", async () => {
    const made = await api.exec({
      lang: "bash",
      code: `mkdir q classes
echo 'package q; public class Plain { public static String text = "plain"; }' > q/Plain.java
echo 'public class Lib { public static String text = "lib "; }' > Lib.java
javac -d . q/Plain.java && javac -d classes Lib.java && jar --create --file lib.jar -C classes Lib.class
rm -r classes Lib.java q/Plain.java`,
    });
    expect(made.files.map(({ name }) => name)).toEqual(["lib.jar", "q/Plain.class"]);
    const answer = await api.exec({
      lang: "java",
      code: "class Main { public static void main(String[] a) { System.out.print(Lib.text + q.Plain.text); } }",
      files: made.files.map(({ id, name }) => ({ id, name, storage_session_id: made.session_id })),
    });
    expect(answer).toMatchObject({ code: 0, stdout: "lib plain", stderr: "" });
  });

  test("a compiler finds no secret, no network device and no process of others", async () => {
    const answer = await api.exec({
      lang: "rust",
      code: `const ENVIRON: &[u8] = include_bytes!("/proc/self/environ");
const DEVICES: &str = include_str!("/proc/self/net/dev");
fn main() {
    print!("{}{}", String::from_utf8_lossy(ENVIRON).replace('\\0', "\\n"), DEVICES);
}`,
    });
    expect(answer).toMatchObject({ code: 0, stderr: "" });
    const lines = answer.stdout.split("\n");
    const names = lines.filter((line) => line.includes("=")).map((line) => line.split("=")[0]);
    expect(names.sort()).toEqual(
      ["HOME", "LANG", "LOGNAME", "OMP_NUM_THREADS", "PATH", "SHELL", "USER"].sort(),
    );
    expect(lines.filter((line) => /^\s*\w+:/.test(line) && !line.includes("lo:"))).toEqual([]);
  });
});

describe("the default memory of a run", () => {
  test("a JVM stays within it and says itself when its heap is full", async () => {
    const code = (blocks: number) => `import java.util.*;
class Main { public static void main(String[] a) {
  List<byte[]> kept = new ArrayList<>();
  for (int i = 0; i < ${blocks}; i++) { kept.add(new byte[1 << 20]); Arrays.fill(kept.get(i), (byte) 1); }
  System.out.println(kept.size());
} }`;
    expect(await api.exec({ lang: "java", code: code(200) })).toMatchObject({ code: 0, stdout: "200\n" });
    const full = await api.exec({ lang: "java", code: code(600) });
    expect(full).toMatchObject({ code: 1, status: null, stdout: "" });
    expect(full.stderr).toContain("java.lang.OutOfMemoryError");
  });

  test("Go collects its garbage before the limit, and is stopped beyond it", async () => {
    const code = (keep: string) => `package main
import "fmt"
var kept [][]byte
func main() {
	for i := 0; i < 40; i++ {
		block := make([]byte, 50<<20)
		for at := range block { block[at] = 1 }
		${keep}
	}
	fmt.Println("done")
}`;
    const garbage = await api.exec({ lang: "go", code: code("_ = block") });
    expect(garbage).toMatchObject({ code: 0, status: null, stdout: "done\n" });
    const hoarder = await api.exec({ lang: "go", code: code("kept = append(kept, block)") });
    expect(hoarder).toMatchObject({ code: 137, status: "ML" });
  });

  test("R plots without a screen and works on data of 200 MB", async () => {
    const code = `x <- numeric(2.5e7); cat(length(x) + sum(x), "\\n")
png("a.png"); plot(1:3); invisible(dev.off()); library(Cairo); Cairo(file = "b.png"); plot(1:3); invisible(dev.off())`;
    const answer = await api.exec({ lang: "r", code });
    expect(answer).toMatchObject({ code: 0, stderr: "", stdout: "2.5e+07 \n" });
    expect(answer.files.map(({ name }) => name)).toEqual(["a.png", "b.png"]);
  });
});
