/** QEMU's machine type `microvm`: what trials and guests have in common. */
import { readFileSync } from "node:fs";

export type Accelerator = "kvm" | "tcg";

export const QEMU = "/usr/bin/qemu-system-x86_64";
/**
 * For emulation, the processor lacks features that are slow to emulate: 5-level page tables, SMAP checks, byte-wise copies
 * (ERMS, FSRM). With FSRM but without ERMS, as an emulator of version 10 would have it, a kernel hangs. AVX and its
 * extensions are off because NumPy is then two to four times as fast. Also, emulators before version 9.1 use wrong addresses
 * for gathered loads (QEMU issue 2474), which made sorted indices wrong.
 */
export const PROCESSOR: Readonly<Record<Accelerator, string>> = {
  kvm: "host",
  tcg: "max,-la57,-smap,-erms,-fsrm,-avx,-avx2,-fma,-f16c,-vaes,-vpclmulqdq",
};

/** Words for the kernel. A kernel that ends restarts at once, which ends the machine. */
export function kernelWords(accelerator: Accelerator): string[] {
  return ["console=ttyS0", "panic=-1", "reboot=t", ...clockWords(accelerator)];
}

/**
 * The machine has no timer with which a kernel could measure the speed of the processor's counter. KVM reports the speed.
 * Under emulation the counter is the counter of this machine.
 */
function clockWords(accelerator: Accelerator): string[] {
  if (accelerator === "kvm") return [];
  const mhz = /^cpu MHz\s*:\s*([\d.]+)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1];
  return [`tsc_early_khz=${Math.round(Number(mhz ?? 2000) * 1000)}`, "tsc=reliable", "mitigations=off"];
}
