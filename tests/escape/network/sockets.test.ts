/**
 * Sockets of every address family, type and protocol, by the C library, by raw calls with garbage above the bits that
 * the kernel reads, as pairs, by the 32-bit entries, and by x32 numbers. Only AF_UNIX gives one.
 */
import { GATE_SIGNAL } from "@svc/test-kit/jail/gate";
import { expect, test } from "vitest";
import { evidence } from "../support/hostile.ts";
import { MACHINE_CODE } from "../support/machine-code.ts";

const FAMILIES = Array.from({ length: 64 }, (_, family) => family);
const REFUSED = FAMILIES.filter((family) => family !== 1);
type Seen = Record<string, number[]>;

/** Makes every attempt and sorts the families by what the kernel answered. */
const sorted = (attempts: string) => `
seen = {}
def note(family, result): seen.setdefault(result, set()).add(family)
${attempts}
show({result: sorted(families) for result, families in seen.items()})`;

/** All families but AF_UNIX are refused as such; some types and protocols of AF_UNIX do not exist. */
function expectOnlyUnix({ EPERM, ok, ...others }: Seen): void {
  expect(EPERM).toEqual(REFUSED);
  expect(ok).toEqual([1]);
  expect(
    Object.values(others)
      .flat()
      .every((family) => family === 1),
  ).toBe(true);
}

test("by raw calls: every family, type, flag and protocol", async () => {
  const seen = await evidence<Seen>(
    sorted(`
for family in range(64):
    for kind in (0, 1, 2, 3, 4, 5, 6, 10):
        for flag in (0, 0o2000000, 0o4000):
            for protocol in (0, 1, 2, 6, 17, 58, 132, 255, 262):
                note(family, call(41, family, kind | flag, protocol))
                if seen.get("ok"): os.closerange(3, 16)`),
  );
  expectOnlyUnix(seen);
});

test("by raw calls with garbage in the high half of each argument", async () => {
  const seen = await evidence<Seen>(
    sorted(`
for family in range(64):
    for high in (1, 0x7fffffff, 0x80000000, 0xffffffff):
        for where in range(1, 8):
            a, b, c = (high << 32 if where >> bit & 1 else 0 for bit in range(3))
            note(family, call(41, family | a, 1 | b, 0 | c))
            os.closerange(3, 16)`),
  );
  expectOnlyUnix(seen);
});

test("with a garbage system call number", async () => {
  const seen = await evidence<Seen>(
    sorted(`
for family in range(64):
    for high in (1, 0xffffffff):
        note(family, call(high << 32 | 41, family, 1, 0))
        os.closerange(3, 16)`),
  );
  expectOnlyUnix(seen);
});

test("families beyond the last and below zero", async () => {
  expect(
    await evidence(`show(sorted({call(41, family, 1, 0) for family in
  list(range(64, 300)) + [0xff01, 0x10001, 0x7fffffff, 0x80000001, 0xffffffff, (1 << 64) - 1]}))`),
  ).toEqual(["EPERM"]);
});

test("by the C library and by Python's module", async () => {
  const seen = await evidence<Seen>(
    sorted(`
import socket
for family in range(64):
    for kind in (1, 2, 3):
        ctypes.set_errno(0)
        fd = libc.socket(family, kind, 0)
        note(family, "ok" if fd >= 0 else errno.errorcode[ctypes.get_errno()])
        note(family, attempt(lambda: socket.socket(family, kind)))
        os.closerange(3, 16)`),
  );
  expectOnlyUnix(seen);
});

test("as pairs", async () => {
  const seen = await evidence<Seen>(
    sorted(`
pair = (ctypes.c_int * 2)()
for family in range(64):
    for high in (0, 1 << 32, 0xffffffff << 32):
        for kind in (1, 2, 3, 5):
            note(family, call(53, family | high, kind | high, 0, pair))
            os.closerange(3, 16)`),
  );
  expectOnlyUnix(seen);
});

test("by x32 numbers, which do not exist", async () => {
  expect(
    await evidence(`show(sorted({call(0x40000000 + number, family, 1, 0) for family in range(64)
  for number in (41, 53, 42, 49, 288, 512, 515, 517, 518, 519, 520, 537, 538, 541, 542, 545)}))`),
  ).toEqual(["ENOSYS"]);
});

test("by int 0x80: the process is killed, whatever the number", async () => {
  // getpid, socket, socketcall, socketpair, execve, clone, mount, and one that no kernel has
  expect(
    await evidence(`${MACHINE_CODE}
show([child(lambda: int_0x80(number, 2, 1, 0)) for number in (20, 359, 102, 360, 11, 120, 21, 9999)])`),
  ).toEqual(Array(8).fill(-GATE_SIGNAL.number));
});

test("by sysenter and from a 32-bit code segment: the process is killed", async () => {
  const [segment, sysenter] = await evidence<[number, number]>(`${MACHINE_CODE}
show([child(lambda: far_32(359, 2, 1, 0)), child(lambda: sysenter(359, 2, 1, 0))])`);
  expect(segment).toBe(-GATE_SIGNAL.number);
  // A processor without the instruction in this mode says so by SIGILL.
  expect([-31, -4, -11]).toContain(sysenter);
});

test("counterpart: the machine code of this test makes ordinary calls", async () => {
  expect(
    await evidence(`${MACHINE_CODE}
show([native(39, 0, 0, 0) == os.getpid(), native(41, 1, 1, 0) > 2, native(41, 2, 1, 0)])`),
  ).toEqual([true, true, -1]);
});

test("counterpart: AF_UNIX works in all its kinds", async () => {
  expect(
    await evidence(`
import array, asyncio, socket
said = []
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    left, right = socket.socketpair(socket.AF_UNIX, kind)
    left.send(b"x"); said.append(right.recv(9).decode())
server = socket.socket(socket.AF_UNIX); server.bind("/tmp/s"); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect("/tmp/s")
other, _ = server.accept()
r, w = os.pipe()
socket.send_fds(client, [b"fd"], [w])
_, fds, _, _ = socket.recv_fds(other, 9, 1)
os.write(fds[0], b"passed"); said.append(os.read(r, 9).decode())
async def loop():
    server = await asyncio.start_unix_server(lambda r, w: w.write(b"async") or w.close(), "/tmp/t")
    reader, _ = await asyncio.open_unix_connection("/tmp/t")
    return (await reader.read()).decode()
said.append(asyncio.run(loop()))
show(said)`),
  ).toEqual(["x", "x", "x", "passed", "async"]);
});
