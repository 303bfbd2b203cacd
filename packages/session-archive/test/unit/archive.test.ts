/** Snapshots as archives: what was written comes back, and everything that no runner wrote is refused. */
import { zstdCompressSync } from "node:zlib";
import { MAX_SNAPSHOT_ENTRIES } from "@svc/contracts";
import {
  compress,
  DamagedArchive,
  decompress,
  LargeArchive,
  type Member,
  type ReadMember,
  readArchive,
  type WrittenMember,
  writeArchive,
} from "@svc/session-archive";
import fc from "fast-check";
import { Header, Pax } from "tar";
import { describe, expect, it } from "vitest";

type Given = Member & { content?: string };
const file = (path: string, content = "", mode = 0o644): Given => ({
  type: "file",
  path,
  mode,
  size: Buffer.byteLength(content),
  content,
});
const directory = (path: string, mode = 0o755): Given => ({ type: "directory", path, mode });
const link = (path: string, target: string): Given => ({ type: "symlink", path, target });

async function* bytesOf(text: string): AsyncGenerator<Buffer> {
  for (const char of [text.slice(0, 1), text.slice(1)]) if (char !== "") yield Buffer.from(char);
}
async function* membersOf(given: readonly Given[]): AsyncGenerator<WrittenMember> {
  for (const { content, ...member } of given) yield { ...member, body: bytesOf(content ?? "") };
}
async function collect(bytes: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of bytes) parts.push(part);
  return Buffer.concat(parts);
}
const written = (given: readonly Given[]) => collect(writeArchive(membersOf(given)));
async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
async function read(bytes: Buffer, pieces = 1000): Promise<Given[]> {
  const found: Given[] = [];
  for await (const { body, ...member } of readArchive(
    inPieces(bytes, pieces),
  ) as AsyncGenerator<ReadMember>) {
    const content = (await collect(body)).toString();
    found.push(member.type === "file" ? { ...member, content } : member);
  }
  return found;
}
const refused = async (bytes: Buffer) => {
  await expect(read(bytes)).rejects.toBeInstanceOf(DamagedArchive);
};

/** One entry as another program would write it, with what its bytes are. */
function entry(fields: object, body = ""): Buffer {
  const header = new Header({
    mode: 0o644,
    uid: 0,
    gid: 0,
    size: Buffer.byteLength(body),
    mtime: new Date(0),
    ...fields,
  });
  const block = Buffer.alloc(512);
  header.encode(block, 0);
  const padding = -Buffer.byteLength(body) & 511;
  return Buffer.concat([block, Buffer.from(body), Buffer.alloc(padding)]);
}
const END = Buffer.alloc(1024);
const archive = (...entries: Buffer[]) => Buffer.concat([...entries, END]);
const pax = (fields: object) => new Pax(fields as Header).encode();

describe("an archive", () => {
  const long = `${"d".repeat(200)}/${"é".repeat(120)}/${"x".repeat(255)}`;

  it("gives back what was written, whatever the pieces in which it arrives", async () => {
    const given = [
      directory("a", 0o700),
      file("a/b.txt", "hello", 0o755),
      file("empty"),
      file("large", "x".repeat(5000)),
      file("ends with a block", "y".repeat(1024)),
      file(long, "long"),
      directory(`${"d".repeat(200)}/e`),
      link("a/l", "../large"),
      link("l", `./${"d".repeat(200)}/${"é".repeat(120)}`),
      link("absolute", "/mnt/data/a"),
      file("spaces and ünïcode\t\n", "1"),
      file("-rf", "2"),
    ];
    const bytes = await written(given);
    for (const pieces of [1, 7, 512, 100_000]) expect(await read(bytes, pieces)).toEqual(given);
    expect(await read(await written([]))).toEqual([]);
  });

  it("gives back files of long names, wherever a header cuts these", async () => {
    const lengths = Array.from({ length: 60 }, (_, at) => at + 60);
    const given = lengths.flatMap((length) => [
      file(`${"d".repeat(150)}/${"e".repeat(length)}/content`, "x".repeat(600)),
      file(`${`${"s".repeat((length % 30) + 1)}/`.repeat(30)}${length}`),
    ]);
    expect(await read(await written(given))).toEqual(given);
  });

  it("gives back any tree", async () => {
    const name = fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 90 })
      .filter(
        (text) =>
          !/[/\0\n\ufffd]/.test(text) && text !== "." && text !== ".." && Buffer.byteLength(text) < 255,
      );
    const files = fc.uniqueArray(fc.tuple(fc.array(name, { minLength: 1, maxLength: 4 }), fc.string()), {
      selector: ([[first]]) => first,
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(files, async (tree) => {
        const given = tree.map(([path, content]) => file(path.join("/"), content));
        expect(await read(await written(given))).toEqual(given);
      }),
    );
  });

  it("can be read by others", async () => {
    const bytes = await written([directory("a"), file("a/b", "hello"), link("l", "a/b")]);
    const { spawnSync } = await import("node:child_process");
    const { stdout } = spawnSync("tar", ["-tvf", "-"], { input: bytes, encoding: "utf8" });
    expect(stdout.split("\n").map((line) => line.replace(/^(\S+).* (?=a|l)/, "$1 "))).toEqual([
      "drwxr-xr-x a/",
      "-rw-r--r-- a/b",
      expect.stringContaining("a/b"),
      "",
    ]);
  });

  it("drops what modes say beyond permissions", async () => {
    expect(await read(archive(entry({ type: "File", path: "s", mode: 0o6755 })))).toMatchObject([
      { mode: 0o755 },
    ]);
  });
});

describe("an archive that no runner wrote is refused", () => {
  const PATHS = [
    "/etc/passwd",
    "../x",
    "a/../../x",
    "a//b",
    "./a",
    "a/.",
    "..",
    "/",
    "a\ufffdb",
    "session-workspace.tar",
  ];
  it.each(PATHS)("path %j", async (path) => {
    await refused(archive(entry({ type: "File", path }, "x")));
    await refused(archive(Buffer.concat([pax({ path }), entry({ type: "File", path: "a" }, "x")])));
  });
  it("paths that are too long, too deep, or cut", async () => {
    for (const path of ["x".repeat(256), `${"a/".repeat(64)}a`, `${"y".repeat(200)}/`.repeat(25)])
      await refused(archive(Buffer.concat([pax({ path }), entry({ type: "File", path: "a" })])));
  });
  it.each([
    ["/etc/passwd"],
    ["../x"],
    ["../../mnt/data/a"],
    ["a/../../x"],
    ["/mnt/data/../x"],
    ["/mnt/database"],
    ["/proc/self/root"],
    [""],
  ])("symlink to %j", (target) =>
    refused(archive(entry({ type: "SymbolicLink", path: "l", linkpath: target, size: 0 }))),
  );
  it.each([
    "Link",
    "CharacterDevice",
    "BlockDevice",
    "FIFO",
    "ContiguousFile",
    "GlobalExtendedHeader",
    "NextFileHasLongPath",
    "NextFileHasLongLinkpath",
    "SparseFile" as const,
  ])("member of type %s", async (type) => {
    const block = entry({ type: "File", path: "a", linkpath: "b" });
    const codes: Record<string, string> = {
      Link: "1",
      CharacterDevice: "3",
      BlockDevice: "4",
      FIFO: "6",
      ContiguousFile: "7",
      GlobalExtendedHeader: "g",
      NextFileHasLongPath: "L",
      NextFileHasLongLinkpath: "K",
      SparseFile: "S",
    };
    await refused(archive(retyped(block, codes[type] as string)));
  });

  /** The header with another type and the checksum that this takes. */
  function retyped(block: Buffer, code: string): Buffer {
    const changed = Buffer.from(block);
    changed.write(code, 156, 1, "latin1");
    changed.fill(" ", 148, 156);
    const sum = changed.subarray(0, 512).reduce((total, byte) => total + byte, 0);
    changed.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
    return changed;
  }

  it.each<[string, Given[]]>([
    ["a path twice", [file("a"), file("a")]],
    ["a file and a directory of one path", [file("a"), directory("a")]],
    ["a file below a file", [file("a"), file("a/b")]],
    ["a file below a link", [link("a", "b"), file("a/b")]],
    ["a link in the place of a directory", [file("a/b"), link("a", "c")]],
    ["a file in the place of a directory", [file("a/b/c"), file("a")]],
  ])("%s", async (_what, members) => refused(await written(members)));

  it("headers of names that say more, too much, or come twice", async () => {
    const one = entry({ type: "File", path: "a" });
    for (const extra of [
      { path: "b", size: 7 },
      { uid: 0, path: "b" },
      { path: "b", comment: "c" },
    ])
      await refused(archive(Buffer.concat([pax(extra), one])));
    await refused(archive(Buffer.concat([pax({ path: "p" }), pax({ path: "q" }), one])));
    await refused(archive(Buffer.concat([pax({ path: "p".repeat(11_000) }), one])));
    const lying = entry({ type: "ExtendedHeader", path: "x", size: 2 ** 31 });
    await refused(archive(Buffer.concat([lying, one])));
  });
  it("sizes that lie", async () => {
    await refused(archive(entry({ type: "File", path: "a", size: 2 ** 40 }, "")));
    await refused(archive(entry({ type: "SymbolicLink", path: "a", linkpath: "b", size: 512 })));
  });
  it("one that is cut off anywhere, or goes on behind its end", async () => {
    const bytes = await written([file("a", "x".repeat(700)), link("b", "a"), directory("c")]);
    for (let size = 0; size < bytes.length; size += 100) await refused(bytes.subarray(0, size));
    await refused(Buffer.concat([bytes, Buffer.alloc(512)]));
    await refused(Buffer.concat([bytes, Buffer.from("x")]));
    await refused(
      Buffer.concat([bytes.subarray(0, bytes.length - 512), entry({ type: "File", path: "z" }), END]),
    );
  });
  it("any changed byte of a header", async () => {
    const bytes = await written([file("a", "x")]);
    for (let at = 0; at < 500; at += 7) {
      // The end of the checksum itself.
      if (at > 153 && at < 156) continue;
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] as number) ^ 0x55;
      await refused(changed);
    }
  });
  it("any bytes at all", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 3000 }), (bytes) => refused(Buffer.from(bytes))),
    );
  });
  it("more members than a snapshot may have", async () => {
    const many = Array.from({ length: MAX_SNAPSHOT_ENTRIES + 1 }, (_, at) => file(`f${at}`));
    expect(await read(await written(many.slice(1)), 65_536)).toHaveLength(MAX_SNAPSHOT_ENTRIES);
    await refused(await written(many));
  });
});

describe("compression", () => {
  const LIMIT = 1 << 20;
  const unpack = (bytes: Buffer) => collect(decompress(inPieces(bytes, 4096), LIMIT));

  it("gives the bytes back", async () => {
    for (const size of [0, 1, 511, 200_000]) {
      const bytes = Buffer.alloc(size, "abc");
      const parts: Buffer[] = [];
      await compress(inPieces(bytes, 1000), async (chunk) => void parts.push(chunk));
      expect(await unpack(Buffer.concat(parts))).toEqual(bytes);
    }
  });
  it("stops at what is larger than allowed: a bomb is not unpacked", async () => {
    const bomb = zstdCompressSync(Buffer.alloc(64 << 20));
    expect(bomb.length).toBeLessThan(10_000);
    await expect(unpack(bomb)).rejects.toBeInstanceOf(LargeArchive);
  });
  it("does not take what is larger than allowed for damaged: the limit may have been higher", async () => {
    await expect(unpack(zstdCompressSync(Buffer.alloc(LIMIT + 1)))).rejects.not.toBeInstanceOf(
      DamagedArchive,
    );
    expect(await unpack(zstdCompressSync(Buffer.alloc(LIMIT)))).toHaveLength(LIMIT);
  });
  it("refuses what is no compressed stream, cut off, or changed", async () => {
    const good = zstdCompressSync(Buffer.from("x".repeat(1000)));
    for (const bad of [
      Buffer.from("no"),
      Buffer.alloc(0),
      Buffer.alloc(3000, 7),
      good.subarray(0, good.length - 3),
    ])
      await expect(unpack(bad)).rejects.toBeInstanceOf(DamagedArchive);
  });
  it("passes on what the source throws, and ends the source when nobody reads on", async () => {
    let ended = false;
    async function* broken(): AsyncGenerator<Buffer> {
      try {
        yield zstdCompressSync(Buffer.alloc(100)).subarray(0, 5);
        throw new RangeError("the source");
      } finally {
        ended = true;
      }
    }
    await expect(collect(decompress(broken(), LIMIT))).rejects.toThrow("the source");
    expect(ended).toBe(true);
  });
});
