/** `./svc down`: ends the background copy of a data folder. */
import { defineCommand } from "../command.ts";
import { INSTANCE_OPTIONS } from "../instance.ts";
import { findCopy } from "../running-copy.ts";
import { stopBackground } from "../supervisor/background.ts";
import { readStoredState } from "../supervisor/state.ts";
import { continueAsRoot, isRoot } from "../system/root.ts";
import { Progress } from "../terminal.ts";

export const down = defineCommand({
  usage: "down",
  summary: "Ends what ./svc up -d started. Files and logs stay.",
  details: `
Accepted requests finish first, each component within SHUTDOWN_GRACE_MS (30 s). No process, mount or control group is left.`,
  options: INSTANCE_OPTIONS,
  run: async ({ values }) => {
    const { instance } = findCopy(values);
    if (readStoredState(instance.runDir) !== undefined && !isRoot()) {
      const asRoot = await continueAsRoot(process.argv.slice(2), "ending the jail");
      if (asRoot !== undefined) return asRoot;
    }
    const stopped = await new Progress(1).step("Ending everything", () => stopBackground(instance));
    console.log(stopped ? `Stopped: ${instance.dataDir}` : `Nothing is running on ${instance.dataDir}.`);
    return 0;
  },
});
