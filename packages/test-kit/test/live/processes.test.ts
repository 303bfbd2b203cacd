import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { isAlive } from "@svc/test-kit/jail/host";
import { newMarker, processesWith, until } from "@svc/test-kit/system/processes";
import { expect, test } from "vitest";

/** Ends its first thread, as the kernel does for a program that calls exit(2) itself: /proc/PID/cmdline is empty from then on. */
const WITHOUT_FIRST_THREAD = `
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall(60, 0)`;

test("a process is found by its command line and alive while any of its threads lives, and not afterwards", async () => {
  const marker = newMarker();
  const child = spawn("/usr/bin/python3", ["-c", WITHOUT_FIRST_THREAD, marker], { stdio: "ignore" });
  try {
    const isWithoutFirstThread = () => processesWith(marker).length === 1 && stateOf(child.pid) === "Z";
    await until(isWithoutFirstThread, 20_000, () => [processesWith(marker), stateOf(child.pid)]);
    expect(isAlive(child.pid ?? 0)).toBe(true);
  } finally {
    child.kill("SIGKILL");
  }
  await once(child, "exit");
  expect(processesWith(marker)).toEqual([]);
  expect(isAlive(child.pid ?? 0)).toBe(false);
});

const stateOf = (pid: number | undefined) =>
  readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /s, "")
    .charAt(0);
