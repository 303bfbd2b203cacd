/** Refused calls in worker threads: the thread gets an error and lives on; a killed one takes its process along at once. */
import { GATE_SIGNAL } from "@svc/test-kit/jail/gate";
import { expect, test } from "vitest";
import { evidence, hostile } from "../support/hostile.ts";
import { MACHINE_CODE } from "../support/machine-code.ts";

test("a refused call in a thread is an error there, and the program goes on", async () => {
  expect(
    await evidence(`
import queue, threading
results = queue.Queue()
def work():
    for number, first in ((41, 2), (165, 0), (272, 0x10000000), (101, 0), (425, 1), (56, 0x10000011), (435, 0)):
        results.put(call(number, first, 0, 0, 0, 0, 0))
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join(10)
show([sorted(results.get() for _ in range(results.qsize())), any(t.is_alive() for t in threads)])`),
  ).toEqual([[...Array(40).fill("ENOSYS"), ...Array(16).fill("EPERM")], false]);
});

test("the 32-bit gate in a thread kills the whole process at once, not a thread of it", async () => {
  const answer = await hostile({
    lang: "py",
    code: `import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
${MACHINE_CODE}
print("before", flush=True)
threading.Thread(target=lambda: int_0x80(359, 2, 1, 0), daemon=True).start()
time.sleep(15)
print("after")`,
  });
  const { name: signal, number } = GATE_SIGNAL;
  expect(answer).toMatchObject({ stdout: "before\n", signal, code: 128 + number, status: "SG" });
  expect(answer.wall_time).toBeLessThan(10_000);
});

test("the same in a child leaves its parent alive", async () => {
  expect(
    await evidence(`${MACHINE_CODE}
import threading
def in_thread():
    t = threading.Thread(target=lambda: int_0x80(20, 0, 0, 0)); t.start(); t.join(15)
show([child(in_thread), os.getpid() > 1])`),
  ).toEqual([-GATE_SIGNAL.number, true]);
});

test("Node.js: workers that are refused sockets report errors, the main thread ends well", async () => {
  const { stdout, stderr, code } = await hostile({
    lang: "js",
    code: `
const { Worker } = require("node:worker_threads");
const script = "const net = require('node:net'); const { parentPort } = require('node:worker_threads');" +
  "net.connect(80, '169.254.169.254').on('error', (error) => parentPort.postMessage(error.code));";
const one = () => new Promise((resolve, reject) => { const w = new Worker(script, { eval: true }); w.on("message", resolve); w.on("error", reject); });
Promise.all(Array.from({ length: 4 }, one)).then((codes) => console.log(codes.join(" ")));`,
  });
  expect({ stdout, stderr, code }).toEqual({ stdout: "EPERM EPERM EPERM EPERM\n", stderr: "", code: 0 });
});

test("a thread that blocks for ever in a call is ended with its program", async () => {
  const answer = await hostile({
    lang: "py",
    code: `import os, threading
r, w = os.pipe()
for _ in range(50): threading.Thread(target=lambda: os.read(r, 1), daemon=True).start()
print("end", flush=True)
os._exit(7)`,
  });
  expect(answer).toMatchObject({ stdout: "end\n", code: 7, status: null });
});
