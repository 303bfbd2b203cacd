/** A workspace that is staged with everything that it had, and listed whole. */
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, bytesOf, type Finished, runJob, runOpen, stage } from "@svc/test-kit/jail/run";
import { slow } from "@svc/test-kit/jail/slowness";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describePrestarted, openPrestarted } from "../support/prestarted.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start();
});
afterAll(() => jaild.stop());

const python = (program: string, job = {}) =>
  runJob(jaild, { argv: ["/usr/bin/python3", "-c", program], listEverything: true, ...job });

const directoriesOf = ({ listing }: Finished) =>
  listing.directories.map(({ path, mode }) => [path.toString("latin1"), mode.toString(8)]);
const symlinksOf = ({ listing }: Finished) =>
  listing.symlinks.map(({ path, target }) => [path.toString("latin1"), target.toString("latin1")]);
const filesOf = ({ listing }: Finished) =>
  listing.files.map(({ path, mode, state }) => [path.toString("latin1"), mode.toString(8), state]);

describe("what is staged", () => {
  const workspace = {
    files: { "bin/tool": "#!/bin/sh\necho tool\n", ".secret/key": "k", "closed/none": "0", plain: "p" },
    readOnly: { "skill/run": "#!/bin/sh\necho skill\n", "skill/data": "d" },
    directories: ["bin", ".secret", "closed", "skill", "empty", ".hidden/empty"],
    symlinks: {
      "bin/alias": "tool",
      up: "../../..",
      absolute: "/etc/passwd",
      broken: "no such\nfile",
      bytes: Buffer.from([0xff, 0xfe]),
    },
    modes: {
      "bin/tool": 0o755,
      ".secret/key": 0o600,
      "closed/none": 0,
      bin: 0o711,
      ".secret": 0o700,
      closed: 0,
      "skill/run": 0o555,
      empty: 0o777,
    },
  };
  const show = `find . -mindepth 1 -printf '%p %y %m %U\\n' | LC_ALL=C sort; bin/alias; skill/run`;

  it("has its modes and belongs to the program, all but what is read-only", async () => {
    const { out, err } = await bash(jaild, show, workspace);
    expect(err).toMatch(/closed.*Permission denied/);
    expect(out.split("\n")).toEqual([
      "./.hidden d 755 1000",
      "./.hidden/empty d 755 1000",
      "./.secret d 700 1000",
      "./.secret/key f 600 1000",
      "./absolute l 777 1000",
      "./bin d 711 1000",
      "./bin/alias l 777 1000",
      "./bin/tool f 755 1000",
      "./broken l 777 1000",
      "./bytes l 777 1000",
      "./closed d 0 1000",
      "./empty d 777 1000",
      "./plain f 644 1000",
      "./skill d 755 1000",
      "./skill/data f 444 65534",
      "./skill/run f 555 65534",
      "./up l 777 1000",
      "tool",
      "skill",
      "",
    ]);
  });

  it("comes back the same from a whole listing, and its bytes can be fetched", async () => {
    const finished = await runOpen(jaild, { argv: ["/bin/true"], listEverything: true, ...workspace });
    expect(directoriesOf(finished)).toEqual([
      [".hidden", "755"],
      [".hidden/empty", "755"],
      [".secret", "700"],
      ["bin", "711"],
      ["closed", "0"],
      ["empty", "777"],
      ["skill", "755"],
    ]);
    expect(filesOf(finished)).toEqual([
      [".secret/key", "600", "unchanged"],
      ["bin/tool", "755", "unchanged"],
      ["closed/none", "0", "unchanged"],
      ["plain", "644", "unchanged"],
      ["skill/data", "444", "unchanged"],
      ["skill/run", "555", "unchanged"],
    ]);
    expect(symlinksOf(finished)).toEqual([
      ["absolute", "/etc/passwd"],
      ["bin/alias", "tool"],
      ["broken", "no such\nfile"],
      ["bytes", "\xff\xfe"],
      ["up", "../../.."],
    ]);
    const { listing, run } = finished;
    expect(listing.emptyDirectories).toEqual([]);
    expect(listing.kept).toEqual([11, 7, 6, 8, 10, 9]);
    expect([listing.missing, listing.omitted, listing.unlisted]).toEqual([[], [], 0]);
    expect((await bytesOf(run, 0))?.toString()).toBe("k");
    expect((await bytesOf(run, 2))?.toString()).toBe("0");
    run.close();
  });

  it("cannot be written where it is read-only, whatever its mode", async () => {
    const { out, files } = await bash(jaild, "chmod 777 skill/run; echo x >> skill/run; echo $?", workspace);
    expect(out).toBe("1\n");
    expect(files["skill/run"]).toBe("unchanged");
  });

  it("goes into directories that are closed already", async () => {
    const run = await stage(jaild, {
      argv: ["/bin/bash", "-c", "chmod u+x c; cat c/d/f"],
      listEverything: true,
    });
    await run.directory(0, "c", 0);
    await run.directory(1, "c/d", 0o100);
    await run.file({ index: 2, path: "c/d/f", size: 5, readOnly: true }, Buffer.from("here\n"));
    await run.symlink("c/d/l", "f");
    await run.start();
    const { stdout, listing } = await run.outcome();
    run.close();
    expect(stdout.toString()).toBe("here\n");
    expect(listing.directories.map(({ path, mode }) => [path.toString(), mode])).toEqual([
      ["c", 0o100],
      ["c/d", 0o100],
    ]);
    expect([listing.files.length, listing.symlinks.length, listing.kept]).toEqual([1, 1, [0, 1]]);
  });

  it("has no name that a symlink made: nothing outside is touched", async () => {
    const through = bash(jaild, "true", { symlinks: { out: "/tmp" }, directories: ["out/made"] });
    await expect(through).rejects.toMatchObject({ kind: "protocol", started: false });
    expect((await bash(jaild, "ls -A /tmp")).out).toBe("");
  });

  it("may be as many as 11,000 entries, and no more", async () => {
    const files = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`.d${i % 50}/f${i}`, `${i}`]));
    const directories = Array.from({ length: 3000 }, (_, i) => `.d${i % 50}/.e${i}`);
    const symlinks = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`l${i}`, `.d/${i}`]));
    const job = { files, directories, symlinks };
    const started = performance.now();
    const whole = await bash(jaild, "find . | wc -l", { ...job, listEverything: true });
    expect(whole.out).toBe("11051\n");
    expect(performance.now() - started).toBeLessThan(slow(80_000));
    const { listing } = whole;
    expect(listing.files.length).toBe(5000);
    expect(listing.files.every(({ state }) => state === "unchanged")).toBe(true);
    expect([listing.directories.length, listing.kept.length, listing.symlinks.length]).toEqual([
      3050, 3000, 3000,
    ]);
    expect([listing.timedOut, listing.unlisted, listing.missing]).toEqual([false, 0, []]);
    const hidden = await bash(jaild, "touch .d7/new .d7/.e7/new", job);
    expect(hidden.listing.files.length).toBe(5002);
    expect([hidden.listing.kept.length, hidden.listing.missing.length]).toEqual([3000, 0]);
    const more = bash(jaild, "true", { ...job, symlinks: { ...symlinks, more: "x" } });
    await expect(more).rejects.toMatchObject({ kind: "protocol", started: false });
  });
});

describe("a listing", () => {
  const tree =
    "mkdir -p .git/objects .cache/a open/.deep/er; echo 1 > .git/HEAD; echo 2 > open/.deep/f; chmod 640 .git/HEAD; ln -s HEAD .git/link; ln -s /nowhere out";

  it("is whole when it is asked for", async () => {
    const finished = await bash(jaild, tree, { listEverything: true });
    expect(filesOf(finished)).toEqual([
      [".git/HEAD", "640", "new"],
      ["open/.deep/f", "644", "new"],
    ]);
    expect(directoriesOf(finished)).toEqual([
      [".cache", "755"],
      [".cache/a", "755"],
      [".git", "755"],
      [".git/objects", "755"],
      ["open", "755"],
      ["open/.deep", "755"],
      ["open/.deep/er", "755"],
    ]);
    expect(symlinksOf(finished)).toEqual([
      [".git/link", "HEAD"],
      ["out", "/nowhere"],
    ]);
    const { emptyDirectories, omitted } = finished.listing;
    expect(emptyDirectories.map(String)).toEqual([".cache/a", ".git/objects", "open/.deep/er"]);
    expect(omitted).toEqual([]);
  });

  it("is not when it is not", async () => {
    const finished = await bash(jaild, tree);
    expect(filesOf(finished)).toEqual([]);
    expect([finished.listing.directories, finished.listing.symlinks]).toEqual([[], []]);
    expect(finished.listing.emptyDirectories).toEqual([]);
    expect(finished.listing.omitted.map(({ path, reason }) => [path.toString(), reason])).toEqual([
      ["out", "type"],
    ]);
  });

  it("is whole for the program of a pre-started interpreter, too", async () => {
    const run = await openPrestarted(jaild, "bash", true);
    run.listEverything();
    await describePrestarted(run, { language: "bash", files: { "script.sh": "mkdir .a" } });
    await run.start();
    const { listing } = await run.outcome();
    expect(run.startedWarm).toBe(true);
    run.close();
    expect(listing.directories.map(({ path }) => path.toString())).toEqual([".a"]);
  });

  it("tells what became of staged directories, and modes without the bits beyond the permissions", async () => {
    const finished = await bash(
      jaild,
      "chmod 2750 a; rmdir b; touch b; rmdir c; ln -s a c; touch f g; chmod 4755 f; chmod 7 g; mkdir t; chmod 1777 t; chmod 6111 r",
      { directories: ["a", "b", "c"], files: { r: "1" }, listEverything: true },
    );
    expect(directoriesOf(finished)).toEqual([
      ["a", "750"],
      ["t", "777"],
    ]);
    expect(filesOf(finished)).toEqual([
      ["b", "644", "new"],
      ["f", "755", "new"],
      ["g", "7", "new"],
      ["r", "111", "unchanged"],
    ]);
    expect([finished.listing.kept, finished.listing.missing]).toEqual([[1], [2, 3]]);
    expect(symlinksOf(finished)).toEqual([["c", "a"]]);
  });
});

describe("a whole listing of a hostile tree", () => {
  it("goes into closed directories, and follows no link", async () => {
    const finished = await bash(
      jaild,
      "mkdir -p .a/b; echo 1 > .a/b/f; ln -s / .a/b/root; ln -s . .a/b/loop; chmod 0 .a/b/f .a/b .a; mkfifo p; chmod 0 .",
      { listEverything: true },
    );
    expect(filesOf(finished)).toEqual([[".a/b/f", "0", "new"]]);
    expect(directoriesOf(finished)).toEqual([
      [".a", "0"],
      [".a/b", "0"],
    ]);
    expect(symlinksOf(finished)).toEqual([
      [".a/b/loop", "."],
      [".a/b/root", "/"],
    ]);
    expect(finished.listing.omitted.map(({ path, reason }) => [path.toString(), reason])).toEqual([
      ["p", "type"],
    ]);
  });

  it("reports an input below what became a symlink as missing", async () => {
    const finished = await bash(jaild, "mv d e; ln -s e d; mv .h .i; ln -s /etc .h", {
      files: { "d/f": "1", ".h/passwd": "2" },
      directories: ["d/sub"],
      listEverything: true,
    });
    expect(finished.listing.missing).toEqual([1, 0, 2]);
    expect(filesOf(finished)).toEqual([
      [".i/passwd", "644", "new"],
      ["e/f", "644", "new"],
    ]);
    expect(symlinksOf(finished)).toEqual([
      [".h", "/etc"],
      ["d", "e"],
    ]);
  });

  it("takes names and targets of any bytes, of every length", async () => {
    const finished = await python(`import os
os.symlink(b"t" * 4095, b"\\xff\\n")
os.symlink(b"\\xfe\\x01", b"n" * 255)
os.mkdir(b".\\xff")
open(b".\\xff/\\xfe", "w").close()`);
    expect(symlinksOf(finished)).toEqual([
      ["n".repeat(255), "\xfe\x01"],
      ["\xff\n", "t".repeat(4095)],
    ]);
    expect(directoriesOf(finished)).toEqual([[".\xff", "755"]]);
    expect(filesOf(finished)).toEqual([[".\xff/\xfe", "644", "new"]]);
  });

  it("names what is too deep and goes no further", async () => {
    const finished = await python(`import os
for i in range(3000):
    os.mkdir(".d"); os.chdir(".d")
os.symlink("x", "l")`);
    expect(finished.listing.directories.length).toBe(64);
    const { omitted } = finished.listing;
    expect(omitted.map(({ path, reason }) => [path.toString().split("/").length, reason])).toEqual([
      [65, "name"],
    ]);
    expect([finished.listing.symlinks, finished.listing.unlisted]).toEqual([[], 0]);
  });

  it("lists 10,000 symlinks with the longest of targets", async () => {
    const finished = await python(
      "import os\nfor i in range(10000): os.symlink('%04d' % i + 't' * 4091, 'l%04d' % i)",
      { limits: { wallMs: slow(60_000) } },
    );
    const { symlinks, unlisted } = finished.listing;
    expect([symlinks.length, unlisted]).toEqual([10_000, 0]);
    expect(
      symlinks.every(
        ({ path, target }) => target.length === 4095 && target.subarray(0, 4).equals(path.subarray(1)),
      ),
    ).toBe(true);
  });

  it("lists the first 10,000 of very many entries, counts the rest, and keeps its inputs", async () => {
    const finished = await python(
      `import os
for i in range(6000):
    os.makedirs("d%05d/.x" % i); os.symlink("t", "d%05d/.x/l" % i); open("d%05d/f" % i, "w").close()`,
      { files: { "z/in": "1" }, directories: ["z/dir"] },
    );
    const { files, directories, symlinks, kept, timedOut, unlisted } = finished.listing;
    // Of 24,000 entries of the run, and z itself.
    expect([files.length + directories.length + symlinks.length, timedOut, unlisted]).toEqual([
      10_002,
      false,
      14_001,
    ]);
    expect(files.at(-1)).toMatchObject({ state: "unchanged", input: 0 });
    expect(directories.at(-1)?.path.toString()).toBe("z/dir");
    expect(kept).toEqual([1]);
    expect(symlinks.length).toBe(2500);
  });

  it("ends in time, however many directories there are", async () => {
    const started = performance.now();
    const { end, listing } = await python(
      "import os\nfor i in range(200):\n  for j in range(150): os.makedirs('.%d/.%d' % (i, j))",
    );
    expect(listing.directories.length).toBe(10_000);
    expect(performance.now() - started - end.wallUs / 1000).toBeLessThan(slow(40_000));
  });
});
