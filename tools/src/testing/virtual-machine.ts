/**
 * Suites that need what few machines have: control groups of version 2 with all controllers, or KVM that works. They run in
 * virtual machines (./machines.ts) under software emulation, so no host is too old or too virtual for them. These have
 * Debian's cloud kernel, no network, and disks that forget what was written (tests/machine/build). The output of the tests
 * is shown as it comes; their outcomes come over a serial line of their own. A machine that ends without its last outcome,
 * or not in time, is a failure.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NODE } from "@svc/cli/components";
import { COMPILE_CACHE } from "@svc/cli/environment";
import { buildBundles } from "@svc/cli/install/bundles";
import { type Instance, ROOT } from "@svc/cli/instance";
import { buildGuest, guestFolder } from "@svc/cli/microvm/image";
import { PROCESSOR } from "@svc/cli/microvm/machine";
import { Problem } from "@svc/cli/problem";
import { mustRun, shown } from "@svc/cli/system/run";
import type { Note } from "@svc/cli/terminal";
import { filesOf, MACHINE_SUITES, MACHINES, type MachineName } from "./machines.ts";
import { type MachineProject, type Outcome, visibly } from "./suites.ts";

const FOLDER = join(ROOT, ".guest");
/** The line that the guest writes after it has reported all outcomes. */
export const LAST_LINE = "end";
/** In time of the host, which may be busy with other suites: only a machine that hangs takes so long. */
const TIMEOUT_MS = 50 * 60_000;
/** Turns off what costs time and shows nothing about control groups and guests. The processor's counter is the machine's clock. */
const KERNEL = "console=ttyS0 loglevel=2 panic=-1 mitigations=off init_on_alloc=0 tsc=reliable";

/** Builds the disks of a suite's machines, also from the built jail and its tests; each only when it is out of date. */
export async function buildMachines(suite: MachineProject, instance: Instance, note: Note): Promise<void> {
  if (process.arch !== "x64") throw new Problem("the virtual machines of the tests need an x86-64 machine");
  await buildBundles();
  await compile();
  const build = [join(ROOT, "tests/machine/build"), FOLDER, instance.packagesDir];
  if (suite === "kvm") {
    const own = { ...instance, image: join(instance.packagesDir, "current") };
    await buildGuest(own, {}, note);
    build.push(guestFolder(own, {}));
  }
  await mustRun(build, "building the virtual machine", { onLine: note });
}

/** Fills Node's cache with what `./svc up` runs besides the components: compiling takes minutes in the machine. */
async function compile(): Promise<void> {
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE };
  await mustRun([NODE, join(ROOT, "tools/src/main.ts"), "up", "--help"], "compiling", { env });
}

/** Runs the machines of a suite and returns the outcomes of their tests. Filters pick test files, and with them machines. */
export async function runMachines(
  suite: MachineProject,
  filters: readonly string[],
  options: { aside?: boolean },
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const machine of MACHINE_SUITES[suite]) {
    const own = filters.filter((filter) => filesOf(machine, [filter]).length > 0);
    if (filters.length === 0 || own.length > 0) outcomes.push(...(await runMachine(machine, own, options)));
  }
  return outcomes;
}

async function runMachine(
  machine: MachineName,
  filters: readonly string[],
  { aside = false },
): Promise<Outcome[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-guest-"));
  const outcomes = join(folder, "outcomes");
  const title = `virtual machine (${machine})`;
  try {
    const command = machineCommand(machine, outcomes, filters);
    const { code, seconds } = await visibly(title, command, { aside, timeout: TIMEOUT_MS });
    const { told, complete } = readOutcomes(existsSync(outcomes) ? readFileSync(outcomes, "utf8") : "");
    if (code === 0 && complete) return told;
    const failure = `${title}: ended early (exit code ${code}), see its output above`;
    return [...told, { name: title, passed: 0, failed: 1, seconds, failures: [failure], flaky: [] }];
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

/**
 * The first program mounts the working tree at the same path as on the host, so that compile caches hold, and hands over to
 * the script in it.
 */
function machineCommand(machine: MachineName, outcomes: string, filters: readonly string[]): string[] {
  const { slowness, memoryMb, processors, disks: names } = MACHINES[machine];
  const words = [ROOT, ...filters];
  if (!words.every((word) => /^[\w./+-]+$/.test(word)))
    throw new Problem(`no words for the virtual machine: ${shown(words)}`);
  const mounts = [
    "mount -t devtmpfs devtmpfs /dev",
    "mount -t tmpfs tmpfs /tmp",
    `mkdir -p ${ROOT}`,
    `mount /dev/nvme1n1 ${ROOT}`,
  ];
  const first = [...mounts, `cd ${ROOT}`, `exec tests/machine/init ${[machine, ...filters].join(" ")}`].join(
    " && ",
  );
  const kernel = `root=/dev/nvme0n1 rw ${KERNEL} TEST_SLOWNESS=${slowness} init=/bin/bash -- -c "${first}"`;
  const disks = names.flatMap((name) => [
    "-drive",
    `file=${join(FOLDER, `${name}.ext4`)},id=${name},if=none,format=raw,snapshot=on`,
    "-device",
    `nvme,drive=${name},serial=${name}`,
  ]);
  return [
    // The emulator computes all the time, and the suites beside it mostly wait: without this they end long before it.
    ...["nice", "-n", "-5"],
    process.env.TEST_QEMU ?? "qemu-system-x86_64",
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"],
    ...["-machine", "pc", ...processors, "-cpu", PROCESSOR.tcg, "-m", `${memoryMb}`],
    ...["-kernel", join(FOLDER, "vmlinuz"), "-append", kernel],
    ...["-serial", "stdio", "-serial", `file:${outcomes}`],
    ...disks,
  ];
}
