/** `./svc uninstall`: removes what ./svc install made, and nothing else. */
import { rmSync } from "node:fs";
import { defineCommand } from "../command.ts";
import { INSTANCE_OPTIONS, resolveInstance } from "../instance.ts";
import { Problem } from "../problem.ts";
import { continueAsRoot } from "../system/root.ts";
import { installedUnit, MADE_ELSEWHERE, UNIT_PATH } from "../systemd/spec.ts";
import { isSystemdRunning, systemctl } from "../systemd/systemctl.ts";
import { UNIT_NAME } from "../systemd/unit.ts";
import { Progress } from "../terminal.ts";

export const uninstall = defineCommand({
  usage: "uninstall [--print]",
  summary: "Ends the service of systemd and removes its unit. Data, settings and packages stay.",
  options: {
    print: { doc: "Say what would be removed and change nothing." },
    ...INSTANCE_OPTIONS,
  },
  run: async ({ values }) => {
    const { dataDir } = resolveInstance(values, process.env);
    const unit = installedUnit();
    if (unit === "other") throw new Problem(`${UNIT_PATH} was not made by this working copy`, MADE_ELSEWHERE);
    if (unit === "none") {
      console.log(`Nothing is installed: there is no ${UNIT_PATH}.`);
      return 0;
    }
    if (values.print) {
      console.log(`Would end ${UNIT_NAME} and remove ${UNIT_PATH}. ${dataDir} stays.`);
      return 0;
    }
    const asRoot = await continueAsRoot(process.argv.slice(2), "a service of systemd");
    if (asRoot !== undefined) return asRoot;
    await new Progress(1).step("Ending the service", async () => {
      if (isSystemdRunning()) await systemctl("disable", "--now", UNIT_NAME);
      rmSync(UNIT_PATH);
      if (isSystemdRunning()) await systemctl("daemon-reload");
    });
    console.log(`Removed: ${UNIT_PATH}. ${dataDir} stays.`);
    return 0;
  },
});
