/**
 * Calls that would act on what all runs share, or tell of it: the image's pages in memory, the host's disk, inodes, numbers
 * that the kernel counts for all; and calls that no ordinary program needs. Each beside the use that programs make of it.
 */

import { Jaild } from "@svc/test-kit/jail/jaild";
import { bash, python } from "@svc/test-kit/jail/run";
import { PROBE } from "@svc/test-kit/programs/probe";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start();
});
afterAll(() => jaild.stop());

const probe = <T>(program: string) => python<T>(jaild, PROBE + program);

describe("a program", () => {
  it("puts no page of a file into a pipe, and copies", async () => {
    expect(
      await probe(`file = os.open("/bin/ls", os.O_RDONLY)
read, write = os.pipe()
own = os.open("own", os.O_RDWR | os.O_CREAT); os.write(own, b"own")
print(json.dumps([attempt(lambda: os.splice(file, write, 16)), call(275, file, 0, write, 0, 16, 0),
  os.sendfile(write, file, 0, 16), len(os.read(read, 99)), os.copy_file_range(own, os.open("copy", os.O_WRONLY | os.O_CREAT), 9, 0)]))`),
    ).toEqual(["EINVAL", "EINVAL", 16, 16, 3]);
  });

  it("takes every flush as done without touching the host's disks", async () => {
    const { end } = await bash(jaild, "sync; echo x > f; sync f; sync -d f; sync -f f; cmp f <(echo x)");
    expect(end.exitCode).toBe(0);
    // a descriptor that is not open shows that the kernel is not asked
    expect(
      await probe(`import mmap
file = os.open("/bin/ls", os.O_RDONLY)
shared = mmap.mmap(file, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
own = mmap.mmap(-1, 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(own))
print(json.dumps([[call(n, -1, 0, 0, 0) for n in (74, 75, 306)], call(26, 0x1000, 4096, 4), call(26, 0x1000, 4096, 1 << 32 | 4),
  call(26, 0x1000, 4096, 1), call(26, address, 4096, 1), attempt(shared.flush)]))`),
    ).toEqual([["ok", "ok", "ok"], "ok", "ok", "ENOMEM", "ok", "ok"]);
  });

  it("neither tells nor changes which pages of the image are in memory", async () => {
    const [advice, hints, resident] = await probe<[string[], string[], boolean]>(`import mmap
file = os.open("/bin/bash", os.O_RDONLY)
area = mmap.mmap(file, 1 << 16, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
vector = (ctypes.c_ubyte * 16)()
pages = call(27, address, 1 << 16, vector)
print(json.dumps([[call(28, address, 4096, a) for a in (20, 21, 25, 12, 1 << 32 | 21, 7, 100)], [call(221, -1, 0, 0, 4), call(187, -1, 0, 0)],
  pages == "ok" and all(v & 1 for v in vector)]))`);
    expect(new Set(advice)).toEqual(new Set(["EINVAL"]));
    expect(hints).toEqual(["ok", "ok"]);
    expect(resident, "mincore says the same of all pages").toBe(true);
    expect(
      await probe(`import mmap
area = mmap.mmap(-1, 1 << 16)
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
area[0] = 1
results = [call(28, address, 1 << 16, a) for a in (0, 1, 2, 3, 14, 15, 16, 17, 10, 11, 4)]
print(json.dumps([sorted(set(results)), area[0], os.preadv(os.open("/bin/ls", os.O_RDONLY), [bytearray(4)], 0)]))`),
    ).toEqual([["ok"], 1, 4]);
  });

  it("reads past the page cache from no file", async () => {
    const direct = "O_DIRECT = os.O_DIRECT; name = ctypes.c_char_p(b'/bin/ls')";
    expect(
      await probe(`${direct}
print(json.dumps([attempt(lambda: os.open("/bin/ls", os.O_RDONLY | O_DIRECT)), call(2, name, O_DIRECT), call(2, name, 1 << 32 | O_DIRECT),
  call(257, -100, name, 1 << 32 | O_DIRECT), call(72, os.open("/bin/ls", os.O_RDONLY), 4, O_DIRECT), call(72, 0, 1 << 32 | 4, 1 << 32 | O_DIRECT | os.O_NONBLOCK),
  call(2, name, 0), call(257, -100, name, os.O_NONBLOCK), call(72, 0, 4, os.O_NONBLOCK)]))`),
    ).toEqual([...Array(6).fill("EINVAL"), "ok", "ok", "ok"]);
  });

  it("leaves no hint in a file, chooses no signal, and lets ordinary fcntl commands pass", async () => {
    const commands = { F_SETSIG: 10, F_GETSIG: 11, F_GETLEASE: 1025, F_SETLEASE: 1024, F_OFD_SETLK: 37 };
    expect(
      await probe(`file = os.open("/bin/ls", os.O_RDONLY)
value = ctypes.create_string_buffer(64)
print(json.dumps([sorted({call(72, file, g << 32 | c, value) for c in [*range(1035, 1040), *${JSON.stringify(Object.values(commands))}] for g in (0, 1)}),
  [call(72, file, c, 0) for c in (0, 1, 3, 9, 1030)]]))`),
    ).toEqual([["EINVAL"], ["ok", "ok", "ok", "ok", "ok"]]);
  });

  it("carries no urgent data, in either direction, by any call", async () => {
    expect(
      await probe(`import socket
one, other = socket.socketpair()
empty = ctypes.create_string_buffer(56)
calls = [(44, 3), (45, 3), (307, 3), (299, 3), (46, 2), (47, 2)]
def with_flags(number, position, flags):
    arguments = [one.fileno(), empty, 1, 0, 0, 0]
    arguments[position] = flags
    return call(number, *arguments)
print(json.dumps([sorted({with_flags(n, p, f) for n, p in calls for f in (1, 1 << 32 | 1, 0x41, 0x4001)}),
  one.send(b"ab", socket.MSG_NOSIGNAL), other.recv(1, socket.MSG_PEEK).decode(), other.recvmsg(2)[0].decode(), one.sendmsg([b"c"])]))`),
    ).toEqual([["ENOTSUP"], 2, "a", "ab", 1]);
  });

  it("tells no number that the kernel counts for all runs, and answers ordinary socket options", async () => {
    expect(
      await probe(`import socket
s = socket.socket(socket.AF_UNIX)
print(json.dumps([attempt(lambda: s.getsockopt(socket.SOL_SOCKET, o, 8)) for o in (57, 71)]
  + [attempt(lambda: s.getsockopt(socket.SOL_SOCKET, o)) for o in (socket.SO_TYPE, socket.SO_ERROR, socket.SO_SNDBUF)]))`),
    ).toEqual(["ENOPROTOOPT", "ENOPROTOOPT", "ok", "ok", "ok"]);
  });

  it("knows no priority inheritance, and all other operations on a futex", async () => {
    const inheriting = [6, 7, 8, 11, 12, 13, 6 | 128, 6 | 256];
    expect(
      await probe(`import threading
word = ctypes.c_int(0)
print(json.dumps([sorted({call(202, ctypes.byref(word), g << 32 | o, 0, 0, 0, 0) for o in ${JSON.stringify(inheriting)} for g in (0, 1)}),
  [call(202, ctypes.byref(word), o, 1, 0, 0, 0) for o in (0, 128)], call(202, ctypes.byref(word), 129, 1),
  attempt(lambda: threading.Condition().acquire())]))`),
    ).toEqual([["ENOSYS"], ["EAGAIN", "EAGAIN"], "ok", "ok"]);
  });
});
