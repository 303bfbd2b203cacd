/** Variables of microVMs: the launcher takes the runner's place where KVM_ENABLED is set. */
import { bool, count, int, oneOf, seconds, text, type Variable, withNote } from "../types.ts";

export const MICROVM = {
  KVM_ENABLED: bool(false, "Run jails inside microVMs."),
  LAUNCHER_RAM_MIB: int(2048, "Memory of a microVM in MiB.", { min: 512, max: 1_048_576 }),
  LAUNCHER_VCPUS: count(2, "Processors of a microVM.", 256),
  LAUNCHER_ROOTFS: text(
    "/sandbox-rootfs",
    "Folder with what a microVM starts from: kernel, initrd, root image.",
  ),
  LAUNCHER_LOG_LEVEL: int(3, "How much the kernels of microVMs tell in the launcher's log.", { max: 5 }),
  LAUNCHER_ACCEL: oneOf(
    ["auto", "kvm", "tcg"],
    "auto",
    "What runs microVMs: the processor (`kvm`), or QEMU's emulation of one (`tcg`), which is many times slower. `auto`: `kvm` where it works.",
  ),
  LAUNCHER_POOL_SIZE: int(2, "MicroVMs that are started ahead and wait for a run.", { max: 512 }),
  LAUNCHER_MEMORY_MIB: withNote(
    int(0, "Memory of all microVMs together in MiB: as many exist at once as fit into it.", {
      max: 16_777_216,
    }),
    "all but a reserve",
  ),
  LAUNCHER_SNAPSHOT: bool(
    true,
    "MicroVMs go on from one that was booted and saved at the start, instead of booting each.",
  ),
  LAUNCHER_RUNS_PER_VM: count(1, "Runs that a microVM serves, all of one user, before it is ended."),
  LAUNCHER_VM_MAX_AGE_SECONDS: seconds(3600, "Age at which a microVM is ended, once its run is over."),
} satisfies Record<string, Variable<unknown>>;
