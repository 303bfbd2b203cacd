import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, bytesOf, python, runJob, runOpen } from "@svc/test-kit/jail/run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start();
});
afterAll(() => jaild.stop());

describe("how a run ends", () => {
  it.each([0, 1, 2, 42, 126, 127, 128, 137, 255])("reports exit code %i as an ordinary end", async (code) => {
    const { end } = await bash(jaild, `exit ${code}`);
    expect(end).toMatchObject({ cause: "exited", exitCode: code, signal: 0, execErrno: 0 });
  });

  it.each([
    ["SIGKILL", 9],
    ["SIGSEGV", 11],
    ["SIGTERM", 15],
    ["SIGABRT", 6],
    ["SIGPIPE", 13],
    ["SIGRTMIN", 34],
  ])("reports %s that the program sent itself", async (name, number) => {
    const { end } = await bash(jaild, `kill -${name} $$`);
    expect(end).toMatchObject({ cause: "signaled", signal: number });
  });

  it("reports a program that does not exist", async () => {
    const { end } = await runJob(jaild, { argv: ["/nowhere"] });
    expect(end).toMatchObject({ cause: "exited", exitCode: 127, execErrno: 2 });
  });

  it("reports a program that may not be executed", async () => {
    const { end } = await runJob(jaild, { argv: ["/etc/passwd"] });
    expect(end).toMatchObject({ cause: "exited", exitCode: 126, execErrno: 13 });
  });

  it("reports a script whose interpreter is missing", async () => {
    const files = { "run.sh": "#!/no/such/interpreter\n" };
    const { out } = await bash(jaild, "chmod +x run.sh; ./run.sh; echo $?", { files });
    expect(out).toMatch(/^12[67]\n$/);
  });

  it("reports arguments that are too long", async () => {
    const { end } = await runJob(jaild, { argv: ["/bin/true", "x".repeat(200_000)] });
    expect(end).toMatchObject({ cause: "exited", exitCode: 126, execErrno: 7 });
  });
});

describe("what the program is given", () => {
  it("gets arguments and environment byte for byte and nothing else", async () => {
    const env = ["A=1", "B=two words", "EMPTY=", "PATH=/usr/bin", "Ü=ß\n="];
    const program = "import sys,os,json; print(json.dumps([sys.argv[1:], dict(os.environ)]))";
    const [args, seen] = await python<[string[], Record<string, string>]>(jaild, program, {
      argv: ["/usr/bin/python3", "-c", program, "", "a b", "$&`", "ü"],
      env,
    });
    expect(args).toEqual(["", "a b", "$&`", "ü"]);
    expect(Object.fromEntries(Object.entries(seen).filter(([name]) => name !== "LC_CTYPE"))).toEqual({
      A: "1",
      B: "two words",
      EMPTY: "",
      PATH: "/usr/bin",
      Ü: "ß\n=",
    });
  });

  it("gets standard input byte for byte, then its end", async () => {
    const stdin = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i & 255));
    const { out } = await bash(jaild, "sha256sum; wc -c", { stdin });
    const { createHash } = await import("node:crypto");
    expect(out).toBe(`${createHash("sha256").update(stdin).digest("hex")}  -\n0\n`);
  });

  it.each([undefined, ""])("finds the end of input at once when none is given (%s)", async (stdin) => {
    const { out } = await bash(jaild, "wc -c", stdin === undefined ? {} : { stdin });
    expect(out).toBe("0\n");
  });

  it("cannot change or grow its standard input", async () => {
    const script = "echo x > /dev/stdin; truncate -s 0 /dev/stdin; cat";
    expect((await bash(jaild, script, { stdin: "fixed" })).out).toBe("fixed");
  });

  it("has exactly three descriptors", async () => {
    const seen = await python<string[]>(
      jaild,
      "import os,json; print(json.dumps(sorted(os.listdir('/proc/self/fd'))))",
    );
    expect(seen).toEqual(["0", "1", "2", "3"]); // 3 is the listing itself
    const leaked = await python<number[]>(
      jaild,
      "import os,json\nfound=[]\nfor fd in range(3, 2048):\n  try: os.fstat(fd); found.append(fd)\n  except OSError: pass\nprint(json.dumps(found))",
    );
    expect(leaked).toEqual([]);
  });

  it("may open /dev/stdout and /dev/stderr again", async () => {
    const { out, err } = await bash(jaild, "echo a > /dev/stdout; echo b > /dev/stderr; cat <(echo c)");
    expect([out, err]).toEqual(["a\nc\n", "b\n"]);
  });

  it("starts in the workspace, as its own session, with default signals and umask 022", async () => {
    const status = await python<{ cwd: string; ids: number[]; umask: number; tty: boolean; status: string }>(
      jaild,
      `import os, json
mask = os.umask(0)
try: os.open("/dev/tty", os.O_RDWR); tty = True
except OSError: tty = False
print(json.dumps(dict(cwd=os.getcwd(), ids=[os.getpid(), os.getsid(0), os.getpgrp(), os.getppid()],
  umask=mask, tty=tty, status=open("/proc/self/status").read())))`,
    );
    expect(status.cwd).toBe("/mnt/data");
    expect(status.ids).toEqual([2, 2, 2, 1]);
    expect(status.umask).toBe(0o022);
    expect(status.tty).toBe(false);
    expect(status.status).toMatch(/SigBlk:\t0+\n/);
    const { out } = await bash(jaild, "grep SigIgn /proc/self/status");
    expect(out).toMatch(/SigIgn:\t0000000001000000/); // SIGXFSZ only
  });
});

describe("files", () => {
  it("tells new, changed, unchanged and missing files apart", async () => {
    const finished = await runOpen(jaild, {
      argv: [
        "/bin/bash",
        "-c",
        "echo more >> changed; rm gone; printf same > rewritten; echo n > new; mkdir empty",
      ],
      files: { changed: "a", gone: "b", "kept/deep/file": "c", rewritten: "same" },
      readOnly: { skill: "s" },
      directories: ["staged/dir"],
    });
    expect(finished.files).toEqual({
      changed: "changed",
      "kept/deep/file": "unchanged",
      new: "new",
      rewritten: "unchanged",
      skill: "unchanged",
    });
    expect(finished.listing.missing).toEqual([1]);
    expect(finished.listing.kept).toEqual([5]);
    expect(finished.listing.emptyDirectories.map(String)).toEqual(["empty"]);
    const changed = finished.listing.files.find((file) => file.path.toString() === "changed");
    expect((await bytesOf(finished.run, changed?.number ?? -1))?.toString()).toBe("amore\n");
    expect(await finished.run.fetch(9999)).toBeUndefined();
    finished.run.close();
  });

  it("brings back a large file byte for byte", async () => {
    const finished = await runOpen(jaild, {
      argv: ["/bin/bash", "-c", "head -c 20000000 /dev/urandom > big; sha256sum < big"],
    });
    const { createHash } = await import("node:crypto");
    const hash = createHash("sha256");
    for await (const chunk of (await finished.run.fetch(0))?.body ?? []) hash.update(chunk);
    finished.run.close();
    expect(finished.out).toBe(`${hash.digest("hex")}  -\n`);
  });

  it("keeps read-only inputs from being written, and lets them be replaced", async () => {
    const readOnly = { "skill/a": "1", "skill/b": "2" };
    const script = "echo x >> skill/a; chmod u+w skill/a; rm skill/b; echo other > skill/b; cat skill/a";
    const finished = await bash(jaild, script, { readOnly });
    expect(finished.out).toBe("1");
    expect(finished.files).toEqual({ "skill/a": "unchanged", "skill/b": "changed" });
  });

  it("finds a change that keeps size and times", async () => {
    const script = "touch -r a ref; printf BBBB > a; touch -r ref a; rm ref";
    expect((await bash(jaild, script, { files: { a: "AAAA" } })).files).toEqual({ a: "changed" });
  });
});
