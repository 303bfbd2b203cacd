/** Variables of microVMs. The launcher reads them, and so does `./svc up`, which starts the launcher instead of the runner. */
import {
  bool,
  count,
  int,
  LONGEST_TIMER_SECONDS,
  oneOf,
  seconds,
  text,
  type Variable,
  withNote,
} from "../types.ts";

/** Enough for a kernel, a runner, warm interpreters and a small program. */
export const MIN_GUEST_MIB = 512;
const MAX_GUEST_MIB = 1_048_576;

export const MICROVM = {
  KVM_ENABLED: bool(false, "Run jails inside microVMs, each with a kernel of its own: docs/microvm.md."),
  LAUNCHER_ACCEL: oneOf(
    ["auto", "kvm", "tcg"],
    "auto",
    "What runs microVMs: `kvm`, and where it is not usable nothing is started; `tcg`: emulation, which is many times slower; `auto`: KVM where a guest boots with it, else emulation with a warning.",
  ),
  LAUNCHER_RAM_MIB: int(2048, "Memory of a microVM in MiB.", { min: MIN_GUEST_MIB, max: MAX_GUEST_MIB }),
  LAUNCHER_VCPUS: count(2, "Processors of a microVM.", 256),
  LAUNCHER_ROOTFS: withNote(
    text(
      "/sandbox-rootfs",
      "Folder that microVMs start from: a kernel and a root image, as services/launcher/guest/build makes them.",
    ),
    "`/sandbox-rootfs`; `./svc up` builds one of the copy's root image",
  ),
  LAUNCHER_LOG_LEVEL: int(
    3,
    "Which messages of a guest's kernel are logged: those below this level of the kernel's own.",
    { max: 5 },
  ),
  LAUNCHER_POOL_SIZE: int(2, "Booted microVMs that wait for a run.", { max: 512 }),
  LAUNCHER_MEMORY_MIB: withNote(
    int(
      0,
      "Memory of all microVMs together in MiB: at work, waiting and paused. As many exist at once as fit into it.",
      {
        max: 16 * MAX_GUEST_MIB,
      },
    ),
    "all but a reserve",
  ),
  LAUNCHER_SNAPSHOT: bool(
    true,
    "MicroVMs go on from one that was booted and saved at the start, instead of booting each.",
  ),
  LAUNCHER_RUNS_PER_VM: count(
    1,
    "Runs of one microVM, all of one user. Then it is ended, and its memory with it.",
  ),
  LAUNCHER_VM_MAX_AGE_SECONDS: seconds(
    3600,
    "Age at which a microVM takes no further run.",
    LONGEST_TIMER_SECONDS,
  ),
} satisfies Record<string, Variable<unknown>>;
