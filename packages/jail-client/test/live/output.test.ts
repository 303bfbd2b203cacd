/** Output as it comes: it is sent while the program runs, costs few frames, and a client that does not read holds up nobody. */
import { once } from "node:events";
import { connect } from "node:net";
import { Jaild } from "@svc/test-kit/jail/jaild";
import { stage } from "@svc/test-kit/jail/run";
import { slow } from "@svc/test-kit/jail/slowness";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { u64 } from "../../src/frames.ts";
import { frame, type JailRun } from "../../src/index.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 2 });
});
afterAll(() => jaild.stop());

const python = (program: string) => ["/usr/bin/python3", "-c", program];

interface Piece {
  stream: string;
  text: string;
}

/** Starts a program whose output is told as it comes. */
async function live(job: Parameters<typeof stage>[1]): Promise<{ run: JailRun; told: Piece[] }> {
  const run = await stage(jaild, job);
  run.tellOutput();
  const told: Piece[] = [];
  await run.start((stream, bytes) => told.push({ stream, text: bytes.toString("latin1") }));
  return { run, told };
}

const joined = (told: readonly Piece[], wanted: string) =>
  told.map(({ stream, text }) => (stream === wanted ? text : "")).join("");

describe("output as it comes", () => {
  it("is told while the program waits, of both streams", async () => {
    const program = "import os, time; os.write(1, b'out'); os.write(2, b'err'); time.sleep(60)";
    const { run, told } = await live({ argv: python(program) });
    await until(() => joined(told, "stdout") === "out" && joined(told, "stderr") === "err", slow(10_000));
    run.close();
  });

  it("is the whole of it with the rest at the end, and no more than the limit", async () => {
    const program = "import os\nfor _ in range(200): os.write(1, b'x' * 1000); os.write(2, b'y' * 100)";
    const { run, told } = await live({ argv: python(program) });
    const { stdout, stderr, end } = await run.outcome();
    expect([end.stdoutTotal, stdout.length]).toEqual([200_000, 65_536]);
    expect(joined(told, "stdout")).toBe(stdout.toString("latin1"));
    expect(joined(told, "stderr")).toBe(stderr.toString("latin1"));
    run.close();
  });

  it("of many small writes comes in few frames", async () => {
    const program = "import os\nfor _ in range(60000): os.write(1, b'x')";
    const { run, told } = await live({ argv: python(program) });
    const { end } = await run.outcome();
    expect(joined(told, "stdout")).toBe("x".repeat(60_000));
    // One for every 20 ms, the first at once, and the rest.
    expect(told.length).toBeLessThanOrEqual(end.wallUs / 20_000 + 3);
    run.close();
  });

  it("goes on after a pause", async () => {
    const program = "import os, time\nfor at in range(4): os.write(1, b'%d\\n' % at); time.sleep(0.2)";
    const { run, told } = await live({ argv: python(program) });
    await until(() => told.length > 0, slow(10_000));
    await run.pause();
    run.resume(0);
    const { stdout } = await run.outcome();
    expect(stdout.toString()).toBe("0\n1\n2\n3\n");
    expect(joined(told, "stdout")).toBe("0\n1\n2\n3\n");
    run.close();
  });

  it("is not told before the end when nobody asked for it", async () => {
    const run = await stage(jaild, { argv: python("import os; os.write(1, b'a'); os.write(1, b'b')") });
    const told: Piece[] = [];
    await run.start((stream, bytes) => told.push({ stream, text: bytes.toString() }));
    await run.outcome();
    expect(told).toEqual([{ stream: "stdout", text: "ab" }]);
    run.close();
  });
});

it("a client that does not read holds up neither the program nor its time limit", async () => {
  const marker = newMarker();
  const socket = connect(jaild.socket);
  await once(socket, "connect");
  const wallMs = slow(1500);
  const cap = 8 << 20;
  const values = [wallMs, 0, 256 << 20, 64, 256, 1 << 20, cap, cap, 0, 0];
  const words = ["/usr/bin/python3", "-c", "import os\nwhile True: os.write(1, b'x' * 4096)", marker];
  socket.write(
    Buffer.concat([
      ...words.map((word) => frame("A", Buffer.from(word))),
      frame("E", Buffer.from("PATH=/usr/bin:/bin")),
      frame("L", ...values.map(u64)),
      frame("O"),
      frame("R"),
    ]),
  );
  socket.pause();
  await until(() => processesWith(marker).length > 0, slow(10_000));
  // The buffers between are full long before the limit, which ends the program although nobody reads.
  await until(() => processesWith(marker).length === 0, wallMs + slow(10_000));
  socket.destroy();
});
