import { once } from "node:events";
import { connect } from "node:net";
import { isAlive, until } from "@svc/test-kit/jail/host";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, LIMITS, stage } from "@svc/test-kit/jail/run";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { u16, u32, u64 } from "../../src/frames.ts";
import { FrameDecoder, frame, JailRun, ProtocolError } from "../../src/index.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ args: ["--workspace-bytes", "10000000", "--workspace-inodes", "64"] });
});
afterAll(() => jaild.stop());

/** Sends raw bytes, returns the frames that come back until jaild closes. */
async function answer(...bytes: Buffer[]): Promise<string[]> {
  const socket = connect(jaild.socket);
  const decoder = new FrameDecoder();
  const seen: string[] = [];
  socket.on("data", (chunk: Buffer) => {
    for (const { tag, payload } of decoder.push(chunk)) seen.push(tag === "e" ? `e${payload[0]}` : tag);
  });
  socket.on("error", () => undefined);
  socket.write(Buffer.concat(bytes));
  await once(socket, "close");
  return seen;
}

const values = (changes: Record<number, number> = {}) =>
  [1000, 0, 64 << 20, 10, 64, 1 << 20, 1000, 1000, 64, 0].map((value, i) => changes[i] ?? value);
const limits = (changes?: Record<number, number>) => frame("L", ...values(changes).map(u64));
const program = frame("A", Buffer.from("/bin/true"));
const file = (path: string, size = 0, mode = 0o644, readOnly = 0) =>
  frame("F", u32(0), Buffer.from([readOnly]), u16(mode), u64(size), Buffer.from(path));
const directory = (path: string, mode = 0o755) => frame("D", u32(1), u16(mode), Buffer.from(path));
const symlink = (path: string, target: string) => frame("Y", Buffer.from(`${path}\0${target}`));

describe("a frame that is out of place or out of bounds is answered with a protocol error", () => {
  it.each<[string, Buffer[]]>([
    ["an unknown tag", [frame("?")]],
    ["a length of nothing", [u32(0)]],
    ["a length beyond every bound", [u32(0x7fffffff)]],
    ["data that nobody announced", [frame("B", Buffer.from("x"))]],
    ["more data than announced", [file("f", 2), frame("B", Buffer.from("xyz"))]],
    ["another frame amid data", [file("f", 2), program]],
    ["an empty data frame", [file("f", 2), frame("B")]],
    ["a start without a program", [limits(), frame("R")]],
    ["a start without limits", [program, frame("R")]],
    ["a start with a payload", [program, limits(), frame("R", Buffer.from("x"))]],
    ["a fetch before the run", [frame("G", u32(0))]],
    ["limits twice", [limits(), limits()]],
    ["limits out of range", [limits({ 0: 0 })]],
    ["limits with the reserved word", [limits({ 9: 1 })]],
    ["a program that is not absolute", [frame("A", Buffer.from("true"))]],
    ["NUL in an argument", [program, frame("A", Buffer.from("a\0b"))]],
    ["a variable without =", [frame("E", Buffer.from("NAME"))]],
    ["a variable without a name", [frame("E", Buffer.from("=value"))]],
    ["standard input twice", [frame("I", u64(0)), frame("I", u64(0))]],
    ["standard input without bound", [frame("I", u64(2 ** 40))]],
    ["an absolute path", [file("/etc/passwd")]],
    ["a path that climbs", [file("a/../../b")]],
    ["a file where a file is", [file("a"), file("a")]],
    ["a file below a file", [file("a"), file("a/b")]],
    ["a file where a directory is", [file("a/b"), file("a")]],
    ["a directory where a file is", [file("a"), directory("a")]],
    ["a file with a set-user-id bit", [file("a", 0, 0o4755)]],
    ["a read-only file that others may write", [file("a", 0, 0o446, 1)]],
    ["a directory with a sticky bit", [directory("a", 0o1777)]],
    ["a directory where a symlink is", [symlink("a", "b"), directory("a")]],
    ["a file where a symlink is", [symlink("a", "b"), file("a")]],
    ["a file through a symlink to a directory", [directory("b"), symlink("a", "b"), file("a/f")]],
    ["a directory through a symlink to the workspace", [symlink("a", "."), directory("a/d")]],
    ["a symlink through a symlink out of the workspace", [symlink("a", "/tmp"), symlink("a/b", "c")]],
    ["a symlink where a file is", [file("a"), symlink("a", "b")]],
    ["a symlink where a directory is", [directory("a"), symlink("a", "b")]],
    ["a symlink twice", [symlink("a", "b"), symlink("a", "b")]],
    ["a symlink whose path climbs", [symlink("../a", "b")]],
    ["a symlink without a target", [symlink("a", "")]],
    ["a symlink whose target is too long", [symlink("a", "b".repeat(4096))]],
    ["a symlink whose target has a NUL", [symlink("a", "b\0c")]],
    ["a whole listing twice", [frame("V"), frame("V")]],
    ["a whole listing with a payload", [frame("V", u32(1))]],
    ["a whole listing of a pre-start", [program, limits(), frame("V"), frame("S")]],
    ["output as it comes twice", [frame("O"), frame("O")]],
    ["output as it comes with a payload", [frame("O", u32(1))]],
    ["output as it comes of a pre-start", [program, limits(), frame("O"), frame("S")]],
    ["a symlink of a pre-start", [program, limits(), symlink("a", "b"), frame("S")]],
    ["too many arguments", [program, ...Array.from({ length: 300 }, () => frame("A", Buffer.from("x")))]],
    [
      "too many inputs",
      [
        ...Array.from({ length: 10_990 }, () => directory("same")),
        ...Array.from({ length: 11 }, (_, i) => symlink(`link${i}`, "same")),
      ],
    ],
  ])("%s", async (_name, frames) => {
    expect(await answer(...frames)).toEqual(["h", "e1"]);
  });
});

describe("a frame to a program that runs or stands still is answered with a protocol error", () => {
  const sleeping = [
    frame("A", Buffer.from("/bin/sleep")),
    frame("A", Buffer.from("100")),
    limits({ 0: 60_000 }),
  ];
  const start = [...sleeping, frame("R")];
  const pause = frame("P");
  const tryPause = frame("T");
  it.each<[string, Buffer[], string[]]>([
    ["continue what is not paused", [frame("C", u64(0))], []],
    ["pause twice", [pause, pause], ["p"]],
    ["ask what is paused", [pause, frame("Q")], ["p"]],
    ["continue twice", [pause, frame("C", u64(0)), frame("C", u64(0))], ["p"]],
    ["continue without a time", [pause, frame("C")], ["p"]],
    ["continue for more than a day", [pause, frame("C", u64(86_400_001))], ["p"]],
    ["a question with a payload", [frame("Q", Buffer.from("x"))], []],
    ["a pause with a payload", [frame("P", u64(1))], []],
    ["try to pause what is paused", [pause, tryPause], ["p"]],
    ["a try to pause with a payload", [frame("T", u64(1))], []],
  ])("%s", async (_name, frames, before) => {
    expect(await answer(...start, ...frames)).toEqual(["h", "s", ...before, "e1"]);
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });

  it("questions before the start", async () => {
    for (const early of [frame("Q"), pause, tryPause, frame("C", u64(0))]) {
      expect(await answer(...sleeping, early, frame("R"))).toEqual(["h", "e1"]);
    }
  });

  it("but a question that crosses the end of the program is passed over", async () => {
    const socket = connect(jaild.socket);
    const decoder = new FrameDecoder();
    const seen: string[] = [];
    socket.on("data", (chunk: Buffer) => {
      for (const { tag } of decoder.push(chunk)) {
        seen.push(tag);
        if (tag === "z") socket.write(Buffer.concat([pause, frame("Q"), tryPause, pause, frame("?")]));
      }
    });
    socket.write(Buffer.concat([program, limits(), frame("R")]));
    await once(socket, "close");
    expect(seen).toEqual(["h", "s", "x", "z", "e"]);
  });

  it("a client that asks without end and never reads loses its run", async () => {
    await jaild.full();
    const before = jaild.keepers;
    const socket = connect(jaild.socket);
    socket.on("error", () => undefined);
    socket.pause();
    socket.write(Buffer.concat([...start, ...Array.from({ length: 100_000 }, () => frame("Q"))]));
    await until(() => before.some((keeper) => !isAlive(keeper)), "the run has ended", 10_000);
    socket.destroy();
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });
});

describe("inputs that do not fit", () => {
  it.each<[string, Buffer[]]>([
    ["one that is too large", [file("f", 20_000_000)]],
    ["several that are", [file("f", 9_000_000), ...blocks(9), file("g", 9_000_000), ...blocks(9)]],
    ["too many", Array.from({ length: 80 }, (_, i) => file(`f${i}`))],
  ])("are refused with a code of their own: %s", async (_name, frames) => {
    expect(await answer(...frames)).toEqual(["h", "e3"]);
  });

  it("reach the caller as such, even while it is still sending", async () => {
    const run = await JailRun.open(jaild.socket, new AbortController().signal);
    run.describe(["/bin/true"], [], LIMITS);
    const send = run.file(
      { index: 0, path: "f", size: 50_000_000, readOnly: false },
      Buffer.alloc(50_000_000),
    );
    await expect(send).rejects.toMatchObject({ kind: "inputs_do_not_fit", started: false });
    run.close();
  });
});

function blocks(count: number): Buffer[] {
  return Array.from({ length: count }, () => frame("B", Buffer.alloc(1_000_000)));
}

describe("after the run", () => {
  it("anything but a fetch ends the connection", async () => {
    expect(await answer(program, limits(), frame("R"), frame("A", Buffer.from("/x")))).toEqual([
      "h",
      "s",
      "x",
      "z",
      "e1",
    ]);
  });

  it("accepts fetches that are sent before the end of the run", async () => {
    const script = ["/bin/bash", "-c", "echo a > a; echo b > b"].map((item) => frame("A", Buffer.from(item)));
    const fetches = [1, 0, 7].map((number) => frame("G", u32(number)));
    const frames = await answer(...script, limits(), frame("R"), ...fetches, frame("?"));
    expect(frames.join("")).toBe("hsxffzgbgbne1");
  });
});

describe("random frames", () => {
  it("never end anything but their own connection", async () => {
    const tags = fc.constantFrom(..."AELDFYVBIRGX");
    const payload = fc.oneof(
      fc.uint8Array({ maxLength: 30 }),
      fc.constantFrom(...values().map(u64)),
      fc.constant(Buffer.from("/bin/true")),
      fc.constant(Buffer.concat(values().map(u64))),
      fc.constant(Buffer.concat([u32(0), Buffer.from([0]), u16(0o644), u64(3), Buffer.from("f")])),
      fc.constant(Buffer.from("link\0target")),
    );
    const streams = fc.array(fc.tuple(tags, payload), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(streams, fc.uint8Array({ maxLength: 12 }), async (frames, tail) => {
        const bytes = frames.map(([tag, bytes]) => frame(tag, bytes));
        // 0xff three times is not a valid length, so every stream ends
        const seen = await answer(...bytes, Buffer.from(tail), Buffer.alloc(64 << 10, 0xff));
        expect(seen[0]).toBe("h");
        expect(seen.at(-1)).toMatch(/^e[13]$/);
      }),
      { numRuns: 150 },
    );
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });
});

describe("staging", () => {
  it("takes a file from a stream and keeps the sender to its word", async () => {
    const run = await stage(jaild, { argv: ["/usr/bin/wc", "-c", "f"] });
    const body = async function* () {
      for (let i = 0; i < 30; i++) yield Buffer.alloc(100_000, i);
    };
    await run.file({ index: 0, path: "f", size: 3_000_000, readOnly: false }, body());
    await run.start();
    expect((await run.outcome()).stdout.toString()).toBe("3000000 f\n");
    run.close();
    const short = await stage(jaild, { argv: ["/bin/true"] });
    await expect(
      short.file({ index: 0, path: "f", size: 5, readOnly: false }, Buffer.from("1234")),
    ).rejects.toThrow(RangeError);
    short.close();
  });

  it("refuses a frame that is too long before it is sent", async () => {
    const run = await JailRun.open(jaild.socket, new AbortController().signal);
    expect(() => run.describe(["x".repeat(2 << 20)], [], LIMITS)).toThrow(ProtocolError);
    run.close();
  });

  it("does not hold the next run back", async () => {
    expect((await bash(jaild, "echo next")).out).toBe("next\n");
  });
});
