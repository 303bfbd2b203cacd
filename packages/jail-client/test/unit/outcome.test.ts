import { describe, expect, it } from "vitest";
import { type Frame, ProtocolError, u16, u32, u64 } from "../../src/frames.ts";
import { listingOf, resultOf, Stream } from "../../src/outcome.ts";

const received = (tag: string, ...parts: Uint8Array[]): Frame => ({ tag, payload: Buffer.concat(parts) });
const byte = (value: number) => Buffer.from([value]);
const end = received("z", u32(0), u64(0));
const file = (number: number, state = 0, path = "p") =>
  received("f", u32(number), byte(state), u32(0xffffffff), u64(7), u16(0o640), Buffer.from(path));
const directory = (input: number, mode: number, empty: number, path: string) =>
  received("v", u32(input), u16(mode), byte(empty), Buffer.from(path));

function listing(...frames: Frame[]) {
  const rest = frames.slice(1);
  return listingOf(frames[0] as Frame, () => {
    const next = rest.shift();
    return next === undefined ? Promise.reject(new Error("nothing more comes")) : Promise.resolve(next);
  });
}

describe("the listing", () => {
  it("collects every kind of entry", async () => {
    const known = received("f", u32(1), byte(2), u32(4), u64(9), u16(0o444), Buffer.from("in"));
    const found = await listing(
      file(0),
      known,
      received("d", Buffer.from("empty")),
      received("k", u32(5)),
      received("m", u32(6)),
      received("o", byte(1), Buffer.from("link")),
      received("z", u32(1), u64(12)),
    );
    expect(found).toEqual({
      files: [
        { number: 0, state: "new", size: 7, mode: 0o640, path: Buffer.from("p") },
        { number: 1, state: "unchanged", input: 4, size: 9, mode: 0o444, path: Buffer.from("in") },
      ],
      emptyDirectories: [Buffer.from("empty")],
      directories: [],
      symlinks: [],
      kept: [5],
      missing: [6],
      omitted: [{ reason: "type", path: Buffer.from("link") }],
      timedOut: false,
      uncompared: false,
      unlisted: 12,
    });
  });

  it("tells one that was not made in time from one that is too long, and from one with inputs that were not compared", async () => {
    for (const [flags, timedOut, uncompared] of [
      [1, false, false],
      [3, true, false],
      [4, false, true],
    ] as const)
      expect(await listing(received("z", u32(flags), u64(1)))).toMatchObject({
        ...{ timedOut, uncompared, unlisted: 1 },
      });
  });

  it("takes directories with their modes and symlinks with their targets from a whole one", async () => {
    const found = await listing(
      directory(0xffffffff, 0o700, 0, ".git"),
      directory(0xffffffff, 0o755, 1, "empty"),
      directory(3, 0o500, 0, "staged"),
      received("y", Buffer.from("link\0../\xff", "latin1")),
      end,
    );
    expect(found).toMatchObject({
      emptyDirectories: [Buffer.from("empty")],
      directories: [
        { path: Buffer.from(".git"), mode: 0o700 },
        { path: Buffer.from("empty"), mode: 0o755 },
        { path: Buffer.from("staged"), mode: 0o500 },
      ],
      symlinks: [{ path: Buffer.from("link"), target: Buffer.from("../\xff", "latin1") }],
      kept: [3],
      omitted: [],
    });
  });

  it.each([
    ["an unknown tag", received("y")],
    ["an unknown state", file(0, 3)],
    ["a number out of order", file(1)],
    ["an empty path", file(0, 0, "")],
    ["a path beyond every bound", file(0, 0, "x".repeat(5000))],
    ["an unknown reason", received("o", byte(9), Buffer.from("p"))],
    ["an entry that is too short", received("f", u32(0))],
    ["a link without target", received("y", Buffer.from("link\0"))],
    ["a link that ends early", received("y", Buffer.from("link"))],
    ["a link without path", received("y", Buffer.from("\0target"))],
    ["a directory without path", directory(0, 0o755, 0, "")],
    ["an index with a tail", received("k", u32(0), byte(0))],
  ])("refuses %s", async (_name, frame) => {
    await expect(listing(frame, end)).rejects.toBeInstanceOf(ProtocolError);
  });

  it("refuses a listing without end", async () => {
    let number = 0;
    await expect(listingOf(file(number++), () => Promise.resolve(file(number++)))).rejects.toThrow(
      /too long/,
    );
  });
});

describe("the result", () => {
  const fields = [byte(1), u32(0), u32(9), u32(0), u64(1), u64(2), u64(3), u64(4), u64(5), u32(6)];

  it("is read field by field", () => {
    expect(resultOf(Buffer.concat(fields))).toEqual({
      cause: "signaled",
      exitCode: 0,
      signal: 9,
      execErrno: 0,
      wallUs: 1,
      cpuUs: 2,
      memoryPeak: 3,
      stdoutTotal: 4,
      stderrTotal: 5,
      oomKills: 6,
      reached: [],
    });
  });

  it("names the limits that the program met, each once", () => {
    const processes = [byte(0), u64(256)];
    const bytes = Buffer.concat([...fields, ...processes, byte(6), u64(16_384)]);
    expect(resultOf(bytes).reached).toEqual([
      { limit: "processes", value: 256 },
      { limit: "shm_files", value: 16_384 },
    ]);
    for (const wrong of [
      [...processes, ...processes],
      [byte(7), u64(1)],
      [byte(1), u32(1)],
    ])
      expect(() => resultOf(Buffer.concat([...fields, ...wrong]))).toThrow(ProtocolError);
  });

  it("is refused with an unknown cause, a tail, or a missing byte", () => {
    const bytes = Buffer.concat(fields);
    expect(() => resultOf(Buffer.concat([byte(7), bytes.subarray(1)]))).toThrow(ProtocolError);
    expect(() => resultOf(Buffer.concat([bytes, byte(0)]))).toThrow(ProtocolError);
    expect(() => resultOf(bytes.subarray(0, -1))).toThrow(ProtocolError);
  });
});

describe("a captured stream", () => {
  it("holds up to its cap and refuses more", () => {
    const stream = new Stream(5);
    stream.push(Buffer.from("abc"));
    stream.push(Buffer.from("de"));
    expect(stream.bytes().toString()).toBe("abcde");
    expect(() => stream.push(Buffer.from("f"))).toThrow(ProtocolError);
  });
});
