/** `./svc restart`: asks the supervisor of the running copy to restart its components one after the other. */

import { defineCommand } from "../command.ts";
import { buildBundles } from "../install/bundles.ts";
import { asksForOtherImage, otherImageText } from "../install/other-image.ts";
import { INSTANCE_OPTIONS } from "../instance.ts";
import { Problem } from "../problem.ts";
import { findCopy } from "../running-copy.ts";
import { changedSettingsFile } from "../settings/changed.ts";
import { settingsSinceStart } from "../settings/started.ts";
import { controlSocket, type RestartEvent, requestRestart } from "../supervisor/control.ts";
import { RESTARTABLE } from "../supervisor/rolling.ts";
import { startAgain, svcLine } from "../svc-line.ts";
import { continueAsRoot } from "../system/root.ts";
import { type Note, Progress } from "../terminal.ts";

const NOTES = {
  stopping: "finishes what it has accepted",
  starting: "starts",
  ready: "is ready",
} as const;

export const restart = defineCommand({
  usage: "restart [COMPONENT]",
  positionals: "[COMPONENT]",
  words: RESTARTABLE,
  summary: "Restarts the components one after the other, or one of them; each finishes its requests first.",
  details: `
Each component finishes what it has accepted, and is ready again before the next one is ended. A request that
takes longer than SHUTDOWN_GRACE_MS (30 s by default) is broken off. While the API restarts, new connections
wait for it (where SERVICE_HOST is a name and no address they are refused). A kept-alive connection may be
closed, or its next request answered with 503 shutting_down: neither was accepted, both may be repeated.
Paused programs with tools are run again up to their pause. Settings stay as ./svc up read them.

Changed code of the components is taken up. The supervisor, jaild and Redis keep running: they, new settings and
a new root image need ./svc down and ./svc up.

Exit codes: 0 all are ready again; 1 one of them is not; 3 nothing is running.`,
  options: INSTANCE_OPTIONS,
  run: async ({ values, positionals: [component] }, settings) => {
    const { instance, state } = findCopy(values);
    if (state === undefined) {
      throw new Problem(
        `nothing is running on ${instance.dataDir}`,
        `${svcLine("up -d")} starts it.`,
        NOT_RUNNING,
      );
    }
    const asRoot = await continueAsRoot(process.argv.slice(2), "restarting components");
    if (asRoot !== undefined) return asRoot;
    const progress = new Progress(2);
    await progress.step("The components (esbuild)", () => buildBundles());
    await progress.step("Restarting, one after the other", (note) =>
      requestRestart(controlSocket(instance), component, shownBy(note)),
    );
    console.log(`Restarted: ${state.url}/v1`);
    const changed = changedSettingsFile(state.settingsFile);
    if (changed !== undefined)
      console.error(
        `warning: ${changed} was changed after the start and does not count yet: ${startAgain()}`,
      );
    const given = settingsSinceStart(instance.runDir, settings.values).filter(
      (name) =>
        settings.values[name] !== undefined && !(changed !== undefined && settings.fromFile.has(name)),
    );
    if (given.length > 0)
      console.error(
        `warning: it keeps the settings of its start; others do not count yet: ${given.join(", ")}`,
      );
    if (asksForOtherImage(instance.dataDir, settings.values)) console.error(`warning: ${otherImageText()}`);
    return 0;
  },
});

const NOT_RUNNING = 3;

const shownBy =
  (note: Note) =>
  ({ process, phase }: RestartEvent): void =>
    note(`${process} ${NOTES[phase]}`);
