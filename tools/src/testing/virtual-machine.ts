/**
 * The suite that needs control groups of version 2 with all controllers: it runs in a virtual machine, under software
 * emulation, so no machine is too old or too virtual for it. The machine has Debian's cloud kernel, no network, and
 * disks that forget what was written (tests/v2/guest/build). What the tests print is shown as it comes; their outcomes
 * come over a serial line of their own. A machine that ends without its last outcome, or not in time, is a failure.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NODE } from "@svc/cli/components";
import { COMPILE_CACHE } from "@svc/cli/environment";
import { type Instance, ROOT } from "@svc/cli/instance";
import { Problem } from "@svc/cli/problem";
import { mustRun, shown } from "@svc/cli/system/run";
import type { Note } from "@svc/cli/terminal";
import { MACHINE_FILES, picksFrom } from "./plan.ts";
import { type Outcome, visibly } from "./suites.ts";

const FOLDER = join(ROOT, ".guest");
const SUITE = "virtual machine (cgroup v2)";
/** What the guest writes when it has told all outcomes. */
export const LAST_LINE = "end";
/** The word that has systemd boot the machine, for the files of the service. */
export const SERVICE = "service";
const MEMORY_MB = 2560;
/**
 * The machine's clock counts the instructions that it executes, a billion to the second, and goes on by itself while it
 * idles. So tests find the same machine however slow and busy this one is, a few times slower than an ordinary one.
 */
const CLOCK = ["-accel", "tcg", "-icount", "shift=0", "-smp", "1"];
const SLOWNESS = 5;
/** Of this machine, which may be busy with other suites: only one that hangs takes so long. */
const TIMEOUT_MS = 50 * 60_000;
/** Without what an emulator is slow at: 5-level page tables, checks of user memory, copies byte by byte. */
const PROCESSOR = "max,-la57,-smap,-erms";
/** Without what costs time and shows nothing about control groups. The processor's counter is the clock above. */
const KERNEL = "console=ttyS0 loglevel=2 panic=-1 mitigations=off init_on_alloc=0 tsc=reliable";

/** Builds the disks, of the built jail and its tests too; each only when it is out of date. */
export async function buildMachine(instance: Instance, note: Note): Promise<void> {
  if (process.arch !== "x64") throw new Problem("the virtual machine of the tests needs an x86-64 machine");
  await compile();
  const build = [join(ROOT, "tests/v2/guest/build"), FOLDER, instance.packagesDir];
  await mustRun(build, "building the virtual machine", { onLine: note });
}

/** Fills Node's cache with what `./svc up` runs besides the components: compiling takes minutes in the machine. */
async function compile(): Promise<void> {
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE };
  await mustRun([NODE, join(ROOT, "tools/src/main.ts"), "up", "--help"], "compiling", { env });
}

/**
 * The outcomes of the suites inside; filters pick suites and test files. The machine is booted twice: into the tests, and into
 * systemd for the tests of the service.
 */
export async function runMachines(
  filters: readonly string[],
  options: { aside?: boolean },
): Promise<Outcome[]> {
  const { live, v2, service } = MACHINE_FILES;
  const ofTests = filters.filter((filter) => picksFrom([...live, ...v2], filter));
  const outcomes: Outcome[] = [];
  if (filters.length === 0 || ofTests.length > 0) outcomes.push(...(await runMachine(ofTests, options)));
  if (filters.length === 0 || filters.some((filter) => picksFrom(service, filter)))
    outcomes.push(...(await runMachine([SERVICE], options)));
  return outcomes;
}

async function runMachine(args: readonly string[], { aside = false }): Promise<Outcome[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-guest-"));
  const outcomes = join(folder, "outcomes");
  try {
    const command = machineCommand(outcomes, args);
    const { code, seconds } = await visibly(SUITE, command, { aside, timeout: TIMEOUT_MS });
    const { told, complete } = readOutcomes(existsSync(outcomes) ? readFileSync(outcomes, "utf8") : "");
    if (code === 0 && complete) return told;
    const failure = `${SUITE}: ended early (exit code ${code}), see its output above`;
    return [...told, { name: SUITE, passed: 0, failed: 1, seconds, failures: [failure], flaky: [] }];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function readOutcomes(text: string): { told: Outcome[]; complete: boolean } {
  const lines = text.split(/\r?\n/).slice(0, -1);
  const complete = lines.at(-1) === LAST_LINE;
  const told = lines.filter((line) => line !== LAST_LINE).map((line) => JSON.parse(line) as Outcome);
  return { told, complete };
}

/** The first program mounts the working tree, where it lies here too (compile caches hold), and hands over to the script in it. */
function machineCommand(outcomes: string, args: readonly string[]): string[] {
  const words = [ROOT, ...args];
  if (!words.every((word) => /^[\w./+-]+$/.test(word)))
    throw new Problem(`no words for the virtual machine: ${shown(words)}`);
  const mounts = [
    "mount -t devtmpfs devtmpfs /dev",
    "mount -t tmpfs tmpfs /tmp",
    `mkdir -p ${ROOT}`,
    `mount /dev/nvme1n1 ${ROOT}`,
  ];
  const first = [...mounts, `cd ${ROOT}`, `exec tests/v2/guest/init ${args.join(" ")}`].join(" && ");
  const kernel = `root=/dev/nvme0n1 rw ${KERNEL} SVC_TEST_SLOWNESS=${SLOWNESS} init=/bin/bash -- -c "${first}"`;
  const disks = ["system", "tree", "image"].flatMap((name) => [
    "-drive",
    `file=${join(FOLDER, `${name}.ext4`)},id=${name},if=none,format=raw,snapshot=on`,
    "-device",
    `nvme,drive=${name},serial=${name}`,
  ]);
  return [
    // It computes all the time, and the suites beside it wait for the most part: without this they end long before it.
    ...["nice", "-n", "-5"],
    "qemu-system-x86_64",
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"],
    ...["-machine", "pc", ...CLOCK, "-cpu", PROCESSOR, "-m", `${MEMORY_MB}`],
    ...["-kernel", join(FOLDER, "vmlinuz"), "-append", kernel],
    ...["-serial", "stdio", "-serial", `file:${outcomes}`],
    ...disks,
  ];
}
