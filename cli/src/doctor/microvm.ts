/** Checks whether microVMs can run here, with which accelerator, and how fast. Boots a kernel only when microVMs are switched on. */
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { installCommands, missingPackages } from "../install/packages.ts";
import type { Instance } from "../instance.ts";
import { accessOf, DEVICE, KVM_LIMIT_MS, kvmStat } from "../microvm/accelerator.ts";
import { guestKernel } from "../microvm/image.ts";
import type { Accelerator } from "../microvm/machine.ts";
import { bootKernel, type Result } from "../microvm/trial.ts";
import { settingOf } from "../settings.ts";
import { svcLine } from "../svc-line.ts";
import { isRoot } from "../system/root.ts";
import { shown } from "../system/run.ts";
import { usesMicrovms } from "../topology.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

const TCG_LIMIT_MS = 60_000;
const SUBJECT = "microVMs";

/** What is known of KVM on this machine. */
export interface Kvm {
  /** Undefined when the device can be opened, otherwise the reason why not. */
  closed: string | undefined;
  /** This machine is itself a virtual one. */
  isNested: boolean;
}

export async function microvm(instance: Instance): Promise<Finding[]> {
  const kvm = { closed: whyClosed(), isNested: isVirtual(readFileSync("/proc/cpuinfo", "utf8")) };
  if (!usesMicrovms(process.env)) return [ok(SUBJECT, `not asked for; ${kvmText(kvm)}`)];
  const missing = missingPackages("microvm");
  if (missing.length > 0) {
    const names = missing.map(({ name }) => name).join(", ");
    return [fail(SUBJECT, `missing: ${names}`, installCommands(missing).map(shown).join(" && "))];
  }
  const kernel = guestKernel(instance, process.env);
  if (kernel === undefined)
    return [
      warn(SUBJECT, `${kvmText(kvm)}; no kernel to try it with yet`, `${svcLine("up --microvm")} makes one.`),
    ];
  if (!isRoot()) return [warn(SUBJECT, "can only be tried by root", `Run ${svcLine("doctor")} as root.`)];
  const wanted = settingOf("LAUNCHER_ACCEL", process.env);
  const byKvm =
    wanted === "tcg" || kvm.closed !== undefined
      ? undefined
      : await bootKernel({ accelerator: "kvm", kernel, limitMs: KVM_LIMIT_MS[wanted] });
  const access = accessOf(kvmStat(), DEVICE);
  const works = byKvm !== undefined && byKvm.problem === undefined;
  const byTcg = works ? undefined : await bootKernel({ accelerator: "tcg", kernel, limitMs: TCG_LIMIT_MS });
  return [trialFinding({ wanted, kvm, byKvm, byTcg, access })];
}

interface Tried {
  wanted: Accelerator | "auto";
  kvm: Kvm;
  /** Undefined when KVM was not tried. */
  byKvm: Result | undefined;
  byTcg: Result | undefined;
  access: { problem?: string; fix?: string };
}

/** Pure. */
export function trialFinding({ wanted, kvm, byKvm, byTcg, access }: Tried): Finding {
  const emulated = byTcg === undefined ? "" : emulatedText(byTcg);
  if (wanted === "tcg")
    return byTcg?.problem === undefined
      ? warn(
          SUBJECT,
          `emulated, as LAUNCHER_ACCEL=tcg says: ${emulated}`,
          "LAUNCHER_ACCEL=auto takes KVM where it works.",
        )
      : fail(SUBJECT, emulated, "docs/microvm.md says what emulation needs.");
  const problem = kvm.closed ?? byKvm?.problem ?? access.problem;
  if (problem === undefined)
    return ok(SUBJECT, `${kvmText(kvm)} and works: a kernel boots in ${secondsOf(byKvm)} s`);
  const note = `KVM is not usable${kvm.isNested ? " in this virtual machine" : ""}: ${problem}`;
  const fix = byKvm?.problem === undefined && access.fix !== undefined ? access.fix : fixOf(kvm);
  return wanted === "kvm" || byTcg?.problem !== undefined
    ? fail(SUBJECT, note, fix)
    : warn(SUBJECT, `${note}; ${emulated}`, fix);
}

function fixOf({ isNested }: Kvm): string {
  return isNested
    ? "Let the host of this machine allow nested virtualisation, or use one that is not virtual (docs/microvm.md)."
    : "Switch virtualisation on in the firmware, and load kvm_intel or kvm_amd (docs/microvm.md).";
}

const secondsOf = (result: Result | undefined) => ((result?.ms ?? 0) / 1000).toFixed(1);

function emulatedText(result: Result): string {
  return result.problem === undefined
    ? `emulation boots a kernel in ${secondsOf(result)} s`
    : `emulation does not work either: ${result.problem}`;
}

function kvmText({ closed, isNested }: Kvm): string {
  const where = isNested ? ", inside of a virtual machine" : "";
  return closed === undefined ? `${DEVICE} can be opened${where}` : `${closed}${where}`;
}

/** `cpuinfo`: the text of /proc/cpuinfo. Pure. */
export function isVirtual(cpuinfo: string): boolean {
  return /^flags\s*:.*\bhypervisor\b/m.test(cpuinfo);
}

function whyClosed(): string | undefined {
  if (!existsSync(DEVICE)) return `there is no ${DEVICE}`;
  try {
    closeSync(openSync(DEVICE, "r+"));
    return undefined;
  } catch (error) {
    return `${DEVICE} cannot be opened (${(error as NodeJS.ErrnoException).code})`;
  }
}
