/** Computes how many guests may exist, and how many of them run programs or hold paused ones. Pure. */
import { MICROVM_OVERHEAD_MIB } from "@svc/cli/capacity";
import type { Config } from "@svc/service-kit";

/** Share of guests that run programs; the others hold paused programs. */
const RUNNING_SHARE = 2 / 3;

export interface GuestCapacity {
  most: number;
  slots: number;
  paused: number;
}

type Settings = Pick<
  Config,
  | "LAUNCHER_RAM_MIB"
  | "LAUNCHER_MEMORY_MIB"
  | "SANDBOX_MAX_CONCURRENT_JOBS"
  | "SANDBOX_MAX_PAUSED"
  | "LAUNCHER_POOL_SIZE"
>;

/** `memoryMib`: memory for all guests when the configuration sets none. Throws when no guest fits. */
export function guestCapacity(config: Settings, memoryMib: number): GuestCapacity {
  const each = config.LAUNCHER_RAM_MIB + MICROVM_OVERHEAD_MIB;
  const fits = Math.floor((config.LAUNCHER_MEMORY_MIB || memoryMib) / each);
  if (fits < 1)
    throw new Error(
      `a microVM takes ${each} MiB (LAUNCHER_RAM_MIB and ${MICROVM_OVERHEAD_MIB} MiB for QEMU), and all together get ${config.LAUNCHER_MEMORY_MIB || memoryMib} MiB`,
    );
  const slots = Math.min(config.SANDBOX_MAX_CONCURRENT_JOBS, Math.ceil(fits * RUNNING_SHARE));
  const paused = Math.min(config.SANDBOX_MAX_PAUSED, fits - slots);
  return { most: Math.min(fits, slots + paused + config.LAUNCHER_POOL_SIZE), slots, paused };
}
