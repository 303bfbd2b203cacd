/**
 * What the previous program left in its slot: files, shared memory, memory pages, processes, environment, arguments, code.
 * Every slot is littered, and searched afterwards.
 */
import { expect, test } from "vitest";
import { besiege, evidenceOf, PYTHON } from "../support/hostile.ts";
import { attacker, neighbour, running } from "../support/running.ts";
import { newWord, SEARCH, searchFor } from "../support/search.ts";

const SLOTS = Number(running.env.SANDBOX_MAX_CONCURRENT_JOBS);

/** Runs a program in every slot, and in some of them a second time: as many as there are slots wait or run at once. */
const everySlot = <T>(run: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: SLOTS + 4 }, run));

test("files, shared memory, queues and sockets of the previous program are gone", async () => {
  const looked = await besiege(async () => {
    const litter = `cd /tmp; for d in /tmp /dev/shm /mnt/data; do echo left > $d/left; echo left > $d/.left; mkdir $d/dir; done
ipcmk -M 4096 -p 666; ipcmk -S 2 -p 666; ipcmk -Q -p 666; (setsid sleep 100 &); chmod 0 /mnt/data`;
    await everySlot(() => neighbour.exec({ lang: "bash", code: litter }));
    const look = `ls -A /tmp /dev/shm /mnt/data; ipcs | grep -c 0x; ls -d /proc/[0-9]* | wc -l; stat -c %a /mnt/data; df -i /mnt/data | awk 'NR==2{print $3}'`;
    return everySlot(() => attacker.exec({ lang: "bash", code: look }));
  });
  const lists = looked.map(({ stdout }) => stdout.split("\n").slice(0, 7).join("\n"));
  expect(new Set(lists)).toEqual(new Set(["/dev/shm:\n\n/mnt/data:\nscript.sh\n\n/tmp:\n0"]));
  expect(new Set(looked.map(({ stdout }) => stdout.split("\n")[8])).size).toBe(1);
  expect(new Set(looked.map(({ stdout }) => stdout.split("\n")[8]))).toEqual(new Set(["755"]));
});

test("no page of memory, file or pipe holds a word of the previous program", async () => {
  const word = newWord();
  const found = await besiege(async () => {
    // In its source, arguments, input, environment of a child, heap, files, pipes, output, and a shared mapping.
    const code = `import mmap, os, subprocess, sys
word = ${JSON.stringify(word)}
held = [word * 1000 + str(n) for n in range(500)]
area = mmap.mmap(-1, 8 << 20)
area.write(word.encode() * (area.size() // len(word)))
for place in ("/tmp/w", "/dev/shm/w", "w"): open(place, "w").write(word * 100000)
subprocess.run(["cat"], input=word * 1000, text=True, stdout=-3, env={"WORD": word})
print(word)`;
    await everySlot(() => neighbour.exec({ lang: "py", code, args: [word], stdin: word }));
    const search = `${PYTHON}${SEARCH}
import mmap
fresh = []
for size in (1 << 20, 16 << 20):
    area = mmap.mmap(-1, size); fresh.append(area); look(area[:], "fresh memory")
libc.malloc.restype = ctypes.c_void_p
for size in (100, 5000, 200000):
    for _ in range(50): look(ctypes.string_at(libc.malloc(ctypes.c_size_t(size)), size), "heap")
for place in ("/tmp/f", "/dev/shm/f", "f"):
    fd = os.open(place, os.O_RDWR | os.O_CREAT); os.posix_fallocate(fd, 0, 8 << 20); look(os.pread(fd, 8 << 20, 0), place); os.close(fd); os.unlink(place)
for _ in range(20):
    r, w = os.pipe(); os.write(w, b"x"); look(os.read(r, 1 << 16), "pipe")
look_around()
show(found)`;
    return everySlot(() => attacker.exec({ lang: "py", code: search, stdin: searchFor([word]) }));
  });
  expect(found.flatMap((answer) => evidenceOf<string[]>(answer))).toEqual([]);
});

test("counterpart: the search finds a word that is there", async () => {
  const word = newWord();
  const code = `${PYTHON}${SEARCH}
# ${word}
held = bytes(b ^ 0x5a for b in words[0]) * 10
look_around()
show(sorted(set(found)))`;
  const answer = await besiege(() =>
    attacker.exec({ lang: "py", code, stdin: searchFor([word]), args: [word] }),
  );
  const found = evidenceOf<string[]>(answer);
  expect(found).toEqual(
    expect.arrayContaining(["0 in memory", "0 in /proc/self/cmdline", "0 in /mnt/data/main.py"]),
  );
});

test("process numbers, times and loads begin anew and tell nothing of earlier programs", async () => {
  const code = `import os
print(os.getpid(), os.getppid(), open("/proc/loadavg").read(), open("/proc/uptime").read())`;
  const seen = await besiege(() => everySlot(() => attacker.exec({ lang: "py", code })));
  expect(new Set(seen.map(({ stdout }) => stdout)).size).toBe(1);
});
