/** A launcher with guests, and what they need. */
import { buildBundles } from "@svc/cli/install/bundles";
import { ACCELERATOR, buildGuest, IMAGE, UID_BASE } from "@svc/test-kit/system/guests";
import { startProgramSystem } from "../support/programs.ts";

/** A launcher with everything that programs with tools need. */
export async function startGuestSystem(env: Record<string, string> = {}) {
  await buildBundles();
  buildGuest();
  return startProgramSystem({
    component: "launcher",
    preludes: true,
    env: {
      KVM_ENABLED: "true",
      LAUNCHER_ACCEL: ACCELERATOR,
      LAUNCHER_ROOTFS: IMAGE,
      LAUNCHER_RAM_MIB: "1024",
      LAUNCHER_MEMORY_MIB: "6000",
      LAUNCHER_POOL_SIZE: "1",
      SANDBOX_JOB_UID_BASE: String(UID_BASE),
      SANDBOX_JOB_GID_BASE: String(UID_BASE),
      SANDBOX_QUEUE_WAIT_MS: "240000",
      SANDBOX_WARM_START: "on",
      ...env,
    },
  });
}
