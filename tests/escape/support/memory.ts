/** Programs that take memory until they are ended, and what their end looks like. */
import { expect } from "vitest";
import { hostile } from "./hostile.ts";

const MIB = 2 ** 20;
/** What the group of a run may hold at most: its memory and its three file systems, full. */
const CEILING = (512 + 512 + 100 + 64) * MIB;
const OUT_OF_MEMORY = {
  status: "ML",
  code: 137,
  signal: "SIGKILL",
  message: "Out of memory",
  stdout: "began\n",
};

/**
 * Python that fills its stack, page by page below what it uses, until the kernel lets it grow no further. Recursion does not
 * get there: the interpreter ends it by itself. Without single quotes, for shells.
 */
export const FILL_STACK = `import ctypes
stack = next(line for line in open("/proc/self/maps") if "[stack]" in line)
bottom = int(stack.split("-")[0], 16)
print("began", flush=True)
while True: bottom -= 4096; ctypes.memset(bottom, 1, 1)`;

/** A program that says that it began, and that it lived if nothing stops it. */
export const bomb = (body: string) => ({
  lang: "py",
  run_timeout: 60_000,
  code: `import ctypes, fcntl, mmap, os, resource, select, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
print("began", flush=True)
${body}
print("survived", flush=True)`,
});

/** The same in each of so many processes; the parent waits for all of them. */
export const inProcesses = (count: number, body: string) =>
  bomb(`for _ in range(${count}):
    if os.fork() == 0:
        try:
${body.replace(/^/gm, " ".repeat(12))}
        finally: time.sleep(60)
time.sleep(60)`);

export async function expectOutOfMemory(program: ReturnType<typeof bomb>): Promise<void> {
  const answer = await hostile(program);
  expect(answer).toMatchObject(OUT_OF_MEMORY);
  expect(answer.stderr).toMatch(/(^|\n)\[sandbox\] Out of memory \(limit 512 MiB\)\n$/);
  expect(answer.memory).toBeGreaterThan(500 * MIB);
  expect(answer.memory).toBeLessThanOrEqual(CEILING);
}
