/**
 * Chooses what runs microVMs on this machine. It is not enough that /dev/kvm can be opened: inside some virtual machines a
 * kernel then hangs. So a trial kernel is booted until it finds no root file system and restarts. That takes a second where
 * KVM works.
 */
import { existsSync, type Stats, statSync } from "node:fs";
import { Problem } from "../problem.ts";
import { shown } from "../system/run.ts";
import type { Accelerator } from "./machine.ts";
import { type Boot, bootKernel } from "./trial.ts";

export interface Chosen {
  accelerator: Accelerator;
  /** The group that may open /dev/kvm; the process of a guest needs it. Undefined: every user may open the device. */
  gid?: number;
  /** Why KVM is not used although it was allowed. */
  warning?: string;
}

export const DEVICE = "/dev/kvm";
/**
 * With KVM even a busy machine boots a kernel in a few seconds; with a broken KVM it never does. When KVM is demanded there
 * is no fallback, so the wait is longer.
 */
export const KVM_LIMIT_MS = { auto: 15_000, kvm: 120_000 };

/** `kernel`: path of a vmlinuz. Throws a Problem where KVM is demanded and not usable. */
export async function chooseAccelerator(
  wanted: Accelerator | "auto",
  kernel: string,
  boot: Boot = bootKernel,
): Promise<Chosen> {
  if (wanted === "tcg") return { accelerator: "tcg" };
  const { problem, gid, fix } = await kvm(kernel, KVM_LIMIT_MS[wanted], boot);
  if (problem === undefined) return { accelerator: "kvm", ...(gid === undefined ? {} : { gid }) };
  if (wanted === "kvm")
    throw new Problem(`LAUNCHER_ACCEL=kvm, and KVM is not usable: ${problem}`, fix ?? ELSEWHERE);
  return { accelerator: "tcg", warning: `KVM is not usable: ${problem}. MicroVMs are emulated` };
}

const ELSEWHERE = "Use a machine on which KVM works, or emulation: LAUNCHER_ACCEL=tcg (docs/microvm.md).";

/** Checks in this order: whether the device exists, whether a kernel boots with it, and who may open it. */
async function kvm(kernel: string, limitMs: number, boot: Boot): Promise<Access> {
  if (!existsSync(DEVICE)) return accessOf(undefined, DEVICE);
  const { problem } = await boot({ accelerator: "kvm", kernel, limitMs });
  return problem === undefined ? accessOf(kvmStat(), DEVICE) : { problem };
}

export interface Access {
  gid?: number;
  problem?: string;
  fix?: string;
}

export const kvmStat = () => statSync(DEVICE, { throwIfNoEntry: false });

const BOTH = 0o6;

/** Checks whether unprivileged users, such as those of guests, may open the device. Pure. */
export function accessOf(found: Pick<Stats, "mode" | "gid"> | undefined, device: string): Access {
  if (found === undefined)
    return {
      problem: `there is no ${device}`,
      fix: "Load the module kvm_intel or kvm_amd; in a virtual machine its host must allow nested virtualisation; a container needs the device.",
    };
  const { mode, gid } = found;
  if ((mode & BOTH) === BOTH) return {};
  if (((mode >> 3) & BOTH) === BOTH) return { gid };
  return {
    problem: `${device} can be opened by its owner alone, and guests have users of their own`,
    fix: `${shown(["chgrp", "kvm", device])} && ${shown(["chmod", "660", device])}, where the system has a group kvm`,
  };
}
