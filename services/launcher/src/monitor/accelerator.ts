/** Which accelerator microVMs run with. */
import { accessSync, constants } from "node:fs";
import type { Accelerator } from "./qemu.ts";

const DEVICE = "/dev/kvm";

/** `auto`: the processor's where the device can be opened. */
export function acceleratorFor(wanted: "auto" | Accelerator): Accelerator {
  if (wanted !== "auto") return wanted;
  try {
    accessSync(DEVICE, constants.R_OK | constants.W_OK);
    return "kvm";
  } catch {
    return "tcg";
  }
}
