/**
 * Processes of this machine, found by a word in their command line, for words that a test made up. Where programs are in
 * microVMs (KVM_ENABLED) it is the virtual machine whose memory holds the word.
 */
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { guestsWith } from "./guest-memory.ts";
import { IN_GUESTS } from "./guests.ts";

/** A word that no other process of this machine has in its command line. */
export const newMarker = () => `marker-${randomUUID()}`;

/** Command lines of all processes that hold the word. */
export function processesWith(marker: string): string[] {
  return pidsWith(marker).map(commandLine);
}

/** Clock ticks that all processes with the word in their command line have used. */
export function processorTicks(marker: string): number {
  return pidsWith(marker)
    .map((pid) =>
      textOf(pid, "stat")
        .replace(/^.*\) /s, "")
        .split(" "),
    )
    .reduce((sum, fields) => sum + Number(fields[11] ?? 0) + Number(fields[12] ?? 0), 0);
}

function pidsWith(marker: string): string[] {
  const named = otherProcesses().filter((pid) => commandLine(pid).includes(marker));
  return IN_GUESTS ? [...named, ...guestsWith(marker)] : named;
}

function otherProcesses(): string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
}

/** A process whose first thread has ended shows it by its other threads alone. */
function commandLine(pid: string): string {
  const text =
    textOf(pid, "cmdline") ||
    threadsOf(pid)
      .map((thread) => textOf(pid, `task/${thread}/cmdline`))
      .join("");
  return text.replaceAll("\0", " ");
}

/** Empty when the process has ended. */
function textOf(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}

function threadsOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** Waits until the condition holds; throws with the last value of `state` when it does not in time. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  withinMs: number,
  state: () => unknown = () => "",
): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > end)
      throw new Error(`not so after ${withinMs} ms: ${JSON.stringify(await state())}`);
    await sleep(20);
  }
}
