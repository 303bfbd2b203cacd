/** Calls of systemctl. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { Problem } from "../problem.ts";
import { mustRun, shown } from "../system/run.ts";
import { UNIT_NAME } from "./unit.ts";

/** Whether systemd is the first process of this machine, with the test of sd_booted(3). */
export const isSystemdRunning = () => existsSync("/run/systemd/system");

export async function systemctl(...words: readonly string[]): Promise<void> {
  await mustRun(["systemctl", ...words], shown(["systemctl", ...words]));
}

/** Starts the unit and waits until it is ready. */
export async function startUnit(): Promise<void> {
  try {
    await systemctl("restart", UNIT_NAME);
  } catch {
    throw new Problem(
      "the service did not get ready",
      `See: journalctl -u ${UNIT_NAME} -n 50. systemd tries again by itself; ./svc uninstall ends that.`,
    );
  }
}

/** Process id of the running unit; 0 when it does not run. */
export function mainPid(): number {
  const { stdout } = spawnSync("systemctl", ["show", UNIT_NAME, "--property=MainPID", "--value"], {
    encoding: "utf8",
  });
  return Number((stdout ?? "").trim()) || 0;
}
