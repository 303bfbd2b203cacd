/**
 * Programs that stopped themselves by SIGSTOP: how a test holds a run at a chosen place, for as long as it wants, and sees on which
 * machine it is. SIGCONT lets a program go on.
 */
import { type Dirent, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Instance } from "@svc/cli/instance";
import { findCgroups } from "@svc/cli/system/cgroups";
import { readOrEmpty } from "./read-file.ts";

/** A statement that stops the program, by the language of its request. */
export const STOP = { bash: "kill -STOP $$", py: "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)" };

/** Answers the pids of the stopped programs in the jails of a copy that runs. */
export function stoppedProgramsOf({ cgroup }: Pick<Instance, "cgroup">): () => number[] {
  const [folder] = findCgroups(cgroup);
  if (folder === undefined) throw new Error(`there is no control group ${cgroup}`);
  return () => processesIn(folder).filter(isStopped);
}

function processesIn(folder: string): number[] {
  const own = readOrEmpty(join(folder, "cgroup.procs")).split("\n").filter(Boolean).map(Number);
  return [...own, ...foldersIn(folder).flatMap(({ name }) => processesIn(join(folder, name)))];
}

/** A group may be gone at any time. */
function foldersIn(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  } catch {
    return [];
  }
}

const isStopped = (pid: number) => /^\d+ \(.*\) T /s.test(readOrEmpty(`/proc/${pid}/stat`));
