/**
 * Wall clocks of components that can be stepped while they run, by Debian's libfaketime: it reads a file of each user at each look at
 * the clock. Monotonic clocks stay as they are, and so does everything that is not a service, jailed programs included.
 */
import {
  chmodSync,
  copyFileSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Instance } from "@svc/cli/instance";
import { userOf } from "@svc/cli/users";
import { afterDeath } from "@svc/test-kit/system/after-death";
import { debianProgram } from "../e2e/support/debian-programs.ts";
import { CLOCKS, type ClockOfChaos } from "./schedule.ts";

const TRIPLET = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" }[process.arch as "x64" | "arm64"];

/**
 * Arguments: the folder, the command. In a mount namespace of its own the command finds a script where setpriv is, which makes root a
 * service's user. What the library keeps in shared memory, also of killed processes, goes with the namespace.
 */
const BEHIND_SETPRIV = `
mount -t tmpfs -o mode=1777,size=16m svc /dev/shm
touch "$1/setpriv"
mount --bind /usr/bin/setpriv "$1/setpriv"
mount --bind "$1/launch" /usr/bin/setpriv
shift
exec "$@"
`;

/** Puts the library before a program that becomes a user with a clock: a process that still is root would make what this user cannot open. */
const launcher = (folder: string) => `#!/bin/sh
clock=
left=$#
while [ $left -gt 0 ]; do
  word=$1 left=$((left - 1))
  shift
  set -- "$@" "$word"
  case $word in
    --reuid=*) clock=${folder}/\${word#*=} ;;
    --) break ;;
  esac
done
if [ -e "$clock" ]; then set -- "$@" /usr/bin/env LD_PRELOAD=${folder}/libfaketime.so; fi
while [ $left -gt 0 ]; do
  word=$1 left=$((left - 1))
  shift
  set -- "$@" "$word"
done
export FAKETIME_TIMESTAMP_FILE="$clock" FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1
exec ${folder}/setpriv "$@"
`;

export class Clocks {
  readonly #folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-clocks-")));
  readonly #instance: Instance;
  readonly #aheadMs = new Map<ClockOfChaos, number>();

  readonly #isRemoved = afterDeath('rm -rf "$what"', this.#folder);

  private constructor(instance: Instance) {
    this.#instance = instance;
    chmodSync(this.#folder, 0o711);
  }

  /** All of them are right. Needs root. */
  static async make(instance: Instance): Promise<Clocks> {
    const library = await debianProgram("libfaketime", `usr/lib/${TRIPLET}/faketime/libfaketimeMT.so.1`);
    const clocks = new Clocks(instance);
    copyFileSync(library, join(clocks.#folder, "libfaketime.so"));
    writeFileSync(join(clocks.#folder, "launch"), launcher(clocks.#folder), { mode: 0o755 });
    for (const name of CLOCKS) clocks.#set(name, 0);
    return clocks;
  }

  /** Put before a command, these words start its services with clocks that can be stepped. */
  get through(): readonly string[] {
    return [
      ...["/usr/bin/unshare", "--mount", "--propagation", "private"],
      ...["/bin/sh", "-ec", BEHIND_SETPRIV, "sh", this.#folder],
    ];
  }

  /** At once, in the process that runs and in one that is started. What is returned steps it back. */
  step(name: ClockOfChaos, byMs: number): () => void {
    const add = (ms: number) => this.#set(name, (this.#aheadMs.get(name) ?? 0) + ms);
    add(byMs);
    return () => add(-byMs);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
    this.#isRemoved();
  }

  /** A reader finds a whole file. */
  #set(name: ClockOfChaos, aheadMs: number): void {
    this.#aheadMs.set(name, aheadMs);
    const file = join(this.#folder, String(userOf(name, this.#instance).uid));
    const seconds = aheadMs / 1000;
    writeFileSync(`${file}.new`, `${seconds < 0 ? "" : "+"}${seconds}\n`);
    renameSync(`${file}.new`, file);
  }
}
