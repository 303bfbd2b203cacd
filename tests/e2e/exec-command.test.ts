/** `./svc exec`: programs, files and exit codes between a shell and the service. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KID, newSigner } from "@svc/test-kit/credentials/signer";
import { type SecondApi, startSecondApi } from "@svc/test-kit/system/second-api";
import { sharedSystem } from "@svc/test-kit/system/shared";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { svc } from "./support/svc.ts";

const system = sharedSystem();
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-exec-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const exec = (args: readonly string[], input?: string) =>
  svc(["exec", ...args], system.environment, { cwd: folder, ...(input === undefined ? {} : { input }) });
const put = (name: string, content: string | Buffer) => writeFileSync(join(folder, name), content);

describe("./svc exec", () => {
  it("runs a file by its extension and gives its two streams and exit code as they are", async () => {
    put("job.py", 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nsys.exit(7)\n');
    expect(await exec(["job.py"])).toEqual({ code: 7, stdout: "out\n", stderr: "err\n" });
  });

  it("runs a program from standard input when no file is named", async () => {
    expect(await exec(["--lang", "bash"], "echo $((6*7))")).toMatchObject({ code: 0, stdout: "42\n" });
    expect(await exec(["-", "-l", "js"], "console.log(6*7)")).toMatchObject({ code: 0, stdout: "42\n" });
  });

  it("runs code of the command line; what comes without a file is Python unless told otherwise", async () => {
    const code = "import sys; print(sys.argv[1:]); sys.exit(3)";
    expect(await exec(["-c", code, "--", "-c"])).toMatchObject({ code: 3, stdout: "['-c']\n" });
    expect(await exec([], "print(6*7)")).toMatchObject({ code: 0, stdout: "42\n" });
    expect(await exec(["-l", "bash", "-c", "cat", "--stdin", "-"], "in")).toMatchObject({ stdout: "in" });
  });

  it("takes an address without a scheme", async () => {
    const { host } = new URL(system.url);
    expect(await exec(["-c", "print(1)", "--url", host])).toMatchObject({ code: 0, stdout: "1\n" });
  });

  it("passes arguments and standard input byte for byte", async () => {
    put("args.sh", 'printf "[%s]" "$@"; cat');
    put("in.txt", "no newline at the end");
    const result = await exec(["args.sh", "--arg", "-x", "--stdin", "in.txt", "--", "b c", "--lang", "*"]);
    expect(result).toMatchObject({ code: 0, stdout: "[-x][b c][--lang][*]no newline at the end" });
  });

  it("takes files in and saves the outputs, folders included, byte for byte", async () => {
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * 7) % 256));
    put("data.bin", bytes);
    put(
      "copy.py",
      'import os, shutil\nos.makedirs("sub")\nshutil.copy("data.bin", "sub/copy.bin")\nshutil.copy("in/renamed.bin", "second.bin")\n',
    );
    const result = await exec([
      "copy.py",
      "--in",
      "data.bin",
      "--in",
      "data.bin:in/renamed.bin",
      "--out",
      "results",
    ]);
    expect(result.code, result.stderr).toBe(0);
    expect(readFileSync(join(folder, "results/sub/copy.bin")).equals(bytes)).toBe(true);
    expect(readFileSync(join(folder, "results/second.bin")).equals(bytes)).toBe(true);
    expect(readdirSync(join(folder, "results")).sort()).toEqual(["second.bin", "sub"]);
  });

  it("never replaces a file silently", async () => {
    put("write.sh", "echo new > x.txt");
    put("x.txt", "old\n");
    const refused = await exec(["write.sh", "--out", "."]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("x.txt exists already") });
    expect(readFileSync(join(folder, "x.txt"), "utf8")).toBe("old\n");
    expect((await exec(["write.sh", "--out", ".", "--force"])).code).toBe(0);
    expect(readFileSync(join(folder, "x.txt"), "utf8")).toBe("new\n");
  });

  it("names outputs that are not saved", async () => {
    put("write.sh", "echo new > x.txt");
    expect(await exec(["write.sh"])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('(use --out DIR): "x.txt"'),
    });
    expect(readdirSync(folder)).toEqual(["write.sh"]);
  });

  it("says which limit ended a program and exits with 137", async () => {
    put("loop.py", "print('before', flush=True)\nwhile True: pass\n");
    const result = await exec(["loop.py", "--timeout", "1500"]);
    expect(result).toEqual({
      code: 137,
      stdout: "before\n",
      stderr: "[sandbox] Time limit exceeded (1.5 s)\n",
    });
  });

  it("shows a crash as 128 and the number of its signal", async () => {
    put("crash.sh", "kill -SEGV $$");
    expect(await exec(["crash.sh"])).toMatchObject({ code: 139, stderr: expect.stringContaining("SIGSEGV") });
  });

  it("prints the whole answer with --json", async () => {
    put("a.py", "print(1)");
    const { stdout } = await exec(["a.py", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ stdout: "1\n", code: 0, status: null, language: "python" });
  });

  it.each([
    [["missing.py"], 1, /cannot read missing.py: there is no such file/],
    [["a.unknown"], 1, /cannot read a.unknown: there is no such file/],
    [["a.py", "b.py"], 2, /unexpected argument b.py/],
    [["--timeuot", "5", "a.py"], 2, /unknown option --timeuot; did you mean --timeout\?/],
    [["a.py", "--timeout", "soon"], 2, /--timeout must be a whole number/],
    [["a.py", "--in", "sub"], 2, /is a folder/],
    [["a.py", "--in", "sub:x"], 2, /is a folder/],
    [["a.py", "--in", "nope.csv"], 1, /^error: cannot read nope.csv: there is no such file\n$/],
    [["a.py", "--in", "a.py/x"], 1, /^error: cannot read a.py\/x: a part of a.py\/x is a file/],
    [["sub"], 1, /^error: cannot read sub: .* is a folder/],
    [["a.py", "--token", "a b"], 2, /the token holds characters that no token has/],
    [["a.py", "--port-offset", "1"], 2, /--port-offset 1 differs from the copy in .*, which listens on http/],
    [["a.py", "--url", "a:b:c"], 2, /--url is not the address of a service: a:b:c/],
    [["a.py", "--lang", "cobol"], 1, /400 unsupported_language/],
    [["a.py", "--url", "http://127.0.0.1:1"], 1, /no service answers at .*\nCheck the address/],
  ])("refuses %j with exit code %i", async (args, code, message) => {
    put("a.py", "print(1)");
    mkdirSync(join(folder, "sub"));
    const result = await exec(args);
    expect(result.code).toBe(code);
    expect(result.stderr).toMatch(message);
    expect(result.stdout).toBe("");
  });
});

describe("./svc exec before an API that wants a token", () => {
  const signer = newSigner();
  let api: SecondApi;
  beforeAll(async () => {
    const env = { LOCAL_MODE: "false", SVC_JWT_PUBLIC_KEY: signer.pem, SVC_JWT_KID: KID };
    api = await startSecondApi(system, env);
  });
  afterAll(async () => {
    expect(await api.stop()).toBe(0);
  });
  const run = (args: readonly string[] = [], env = {}) =>
    svc(["exec", "-c", "print(1)", "--url", api.url, ...args], env, { cwd: folder });

  it("sends the token of --token or SVC_TOKEN, with files too", async () => {
    put("a.txt", "a");
    expect(await run(["--in", "a.txt", "--token", signer.mint()])).toMatchObject({ code: 0, stdout: "1\n" });
    expect(await run([], { SVC_TOKEN: signer.mint() })).toMatchObject({ code: 0, stdout: "1\n" });
    expect(await run(["--token", signer.mint()], { SVC_TOKEN: "wrong" })).toMatchObject({ code: 0 });
  });

  it("says how to give one, and does not show a wrong one", async () => {
    const none = await run();
    expect(none).toMatchObject({ code: 1, stdout: "" });
    expect(none.stderr).toMatch(/^error: .*\(401 unauthorized\)\nPass --token TOKEN or set SVC_TOKEN: /);
    const wrong = await run(["--token", "wrong-token"]);
    expect(wrong).toMatchObject({ code: 1, stdout: "" });
    expect(wrong.stderr).toMatch(/\(401 unauthorized\)\nThe token was not accepted/);
    expect(wrong.stderr).not.toContain("wrong-token");
  });
});
