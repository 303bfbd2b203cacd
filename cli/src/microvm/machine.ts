/** QEMU's machine `microvm`, as far as a trial of it and a guest have it in common. */
import { readFileSync } from "node:fs";

export type Accelerator = "kvm" | "tcg";

export const QEMU = "/usr/bin/qemu-system-x86_64";
/**
 * Under emulation without what it is slow at: 5-level page tables, checks of user memory, copies byte by byte. With FSRM and without ERMS,
 * as an emulator of version 10 would have it, a kernel hangs. Without AVX and what is built on it: NumPy is two to four times as fast then, and
 * emulators before version 9.1 take wrong addresses for gathered loads (QEMU issue 2474), so that sorted indices were wrong.
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
 * The machine has no timer by which a kernel could find out how fast the processor's counter runs. KVM tells it; under emulation
 * the counter is the one of this machine.
 */
function clockWords(accelerator: Accelerator): string[] {
  if (accelerator === "kvm") return [];
  const mhz = /^cpu MHz\s*:\s*([\d.]+)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1];
  return [`tsc_early_khz=${Math.round(Number(mhz ?? 2000) * 1000)}`, "tsc=reliable", "mitigations=off"];
}
