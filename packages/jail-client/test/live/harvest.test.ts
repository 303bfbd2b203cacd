import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, bytesOf, runJob, runOpen } from "@svc/test-kit/jail/run";
import { slow } from "@svc/test-kit/jail/slowness";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start();
});
afterAll(() => jaild.stop());

const python = (program: string, job = {}) =>
  runJob(jaild, { argv: ["/usr/bin/python3", "-c", program], ...job });

describe("what counts as an output", () => {
  it("lists regular files only and names the rest by type", async () => {
    const { files, listing } = await bash(
      jaild,
      `ln -s /etc/passwd link; ln -s . loop; ln -s missing broken; mkfifo fifo; echo x > file; ln file hard;
       python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'`,
    );
    expect(files).toEqual({ file: "new", hard: "new" });
    expect(listing.omitted.map(({ path, reason }) => [path.toString(), reason])).toEqual([
      ["broken", "type"],
      ["fifo", "type"],
      ["link", "type"],
      ["loop", "type"],
      ["sock", "type"],
    ]);
  });

  it("skips dot directories whole, unless an input lies below them; lists dot files", async () => {
    const { files, listing } = await bash(
      jaild,
      "mkdir -p .cache/a a/.git/b .keep/sub; touch .cache/a/f a/.git/b/f .dotfile a/.dotfile .keep/new .keep/sub/x; ln -s x .cache/l",
      { files: { ".keep/sub/in": "1" } },
    );
    expect(files).toEqual({
      ".dotfile": "new",
      "a/.dotfile": "new",
      ".keep/new": "new",
      ".keep/sub/x": "new",
      ".keep/sub/in": "unchanged",
    });
    expect(listing.omitted).toEqual([]);
    expect(listing.emptyDirectories).toEqual([]);
  });

  it("reports empty directories, and staged ones as kept or missing", async () => {
    const { listing } = await bash(
      jaild,
      "mkdir -p new/empty new/full; touch new/full/f; rmdir gone; rmdir became; touch became",
      {
        directories: ["stays", "gone", "became", "deep/er"],
      },
    );
    expect(listing.emptyDirectories.map(String)).toEqual(["new/empty"]);
    expect(listing.kept).toEqual([3, 0]);
    expect(listing.missing).toEqual([2, 1]);
  });

  it("reports an input that became a directory, a link or a fifo as missing", async () => {
    const { listing, files } = await bash(
      jaild,
      "rm a b c; mkdir a; touch a/f; ln -s /etc/passwd b; mkfifo c",
      {
        files: { a: "1", b: "2", c: "3", "d/e": "4" },
      },
    );
    expect(listing.missing).toEqual([0, 1, 2]);
    expect(files).toEqual({ "a/f": "new", "d/e": "unchanged" });
    expect(listing.omitted.map(({ path }) => path.toString())).toEqual(["b", "c"]);
  });

  it("follows a renamed input nowhere: it is missing, and a new file", async () => {
    const { listing, files } = await bash(jaild, "mv a b; mv dir other", { files: { a: "1", "dir/f": "2" } });
    expect(listing.missing).toEqual([0, 1]);
    expect(files).toEqual({ b: "new", "other/f": "new" });
  });
});

describe("hostile trees", () => {
  it("lists names of any bytes, sorted by bytes", async () => {
    const { listing } = await python(`import os
for n in [b"new\\nline", b"\\xff\\xfe", b"a" * 255, b"-rf", b"%2e%2e", b"\\xe2\\x80\\xaeRTL", b"e\\xcc\\x81", b"\\xc3\\xa9", b" ", b"*", b"a-b", b"a.b"]:
    open(n, "w").close()
os.mkdir("a"); open("a/x", "w").close()`);
    const paths = listing.files.map(({ path }) => path);
    expect(paths.length).toBe(13);
    expect(paths).toEqual([...paths].sort(Buffer.compare));
    expect(paths.some((path) => path.equals(Buffer.from([0xff, 0xfe])))).toBe(true);
  });

  it("is not stopped by closed directories and files", async () => {
    const { files } = await bash(
      jaild,
      "mkdir -p d/e; echo 1 > d/e/f; echo 2 > g; chmod 000 g d/e d; chmod 000 .",
      {},
    );
    expect(files).toEqual({ "d/e/f": "new", g: "new" });
  });

  it("names what is too deep and goes no further", async () => {
    const { listing, end } = await python(`import os
for i in range(3000):
    os.mkdir("d"); os.chdir("d")
open("f", "w").close()`);
    expect(end.cause).toBe("exited");
    expect(listing.files).toEqual([]);
    expect(listing.omitted.map(({ path, reason }) => [path.toString().split("/").length, reason])).toEqual([
      [65, "name"],
    ]);
  });

  it("names paths that are too long", async () => {
    const { listing } = await python(`import os
for i in range(20):
    os.mkdir("x" * 240); os.chdir("x" * 240)
open("f", "w").close()`);
    expect(listing.omitted.map(({ reason }) => reason)).toEqual(["name"]);
    expect(listing.omitted[0]?.path.length).toBeGreaterThan(4096);
  });

  it("lists the first 10,000 of very many files and counts the rest", async () => {
    const { listing } = await python("for i in range(50000): open('f%06d' % i, 'w').close()");
    expect(listing.files.length).toBe(10_000);
    expect(listing.files[0]?.path.toString()).toBe("f000000");
    expect(listing.files.at(-1)?.path.toString()).toBe("f009999");
    expect([listing.timedOut, listing.unlisted]).toEqual([false, 40_000]);
  });

  it("lists its inputs however many files come before them", async () => {
    const { listing } = await python(
      "for i in range(12000): open('f%06d' % i, 'w').close()\nimport os; os.remove('y')",
      {
        files: { y: "1", z: "2" },
      },
    );
    expect(listing.files.at(-1)).toMatchObject({ number: 10_000, state: "unchanged", input: 1 });
    expect(listing.missing).toEqual([0]);
  });

  it("answers in time for a tree of many directories", async () => {
    const started = performance.now();
    const { listing, end } = await python(
      "import os\nfor i in range(200):\n  for j in range(300): os.makedirs('%d/%d' % (i, j))",
    );
    expect(listing.emptyDirectories.length).toBe(10_000);
    expect(performance.now() - started - end.wallUs / 1000).toBeLessThan(slow(40_000));
  });

  it("takes a workspace that was emptied and closed", async () => {
    const { listing } = await bash(
      jaild,
      "rm -rf /mnt/data/* /mnt/data/.[a-z]*; rmdir /mnt/data; chmod 0 /mnt/data; mv /mnt/data /mnt/x",
      {
        files: { a: "1" },
        directories: [".b"],
      },
    );
    expect(listing.files).toEqual([]);
    expect(listing.missing).toEqual([1, 0]);
  });

  it("fetches the bytes of sparse, closed and hard-linked files, and of none that was not listed", async () => {
    const finished = await runOpen(jaild, {
      argv: ["/bin/bash", "-c", "truncate -s 3M a; echo end >> a; chmod 0 a; ln a b; ln -s /etc/passwd c"],
    });
    for (const number of [0, 1]) {
      const bytes = (await bytesOf(finished.run, number)) ?? Buffer.alloc(0);
      expect(bytes.length).toBe((3 << 20) + 4);
      expect(bytes.subarray(-4).toString()).toBe("end\n");
    }
    expect(await finished.run.fetch(2)).toBeUndefined();
    finished.run.close();
  });
});
