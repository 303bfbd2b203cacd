/** Variables of features that this version does not offer. */
import { bool, count, int, seconds, text, type Variable } from "../types.ts";

export const UNAVAILABLE = {
  SANDBOX_WORKSPACE_ROOT: text("/tmp/sandbox", "Place of workspaces."),
  SANDBOX_WORKSPACE_REAPER_MAX_AGE_SECONDS: seconds(3600, "Age at which a left-over workspace is removed."),
  KVM_ENABLED: bool(false, "Run jails inside microVMs."),
  LAUNCHER_RAM_MIB: count(2048, "Memory of a microVM in MiB."),
  LAUNCHER_VCPUS: count(2, "Processors of a microVM.", 256),
  LAUNCHER_ROOTFS: text("/sandbox-rootfs", "Root image of a microVM."),
  LAUNCHER_LOG_LEVEL: int(3, "Log verbosity of the launcher.", { max: 5 }),
} satisfies Record<string, Variable<unknown>>;
