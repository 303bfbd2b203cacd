/** The background half of `up -d`: runs a supervisor until a signal stops it. Not meant to be typed by a person. */
import { defineCommand } from "../command.ts";
import { INSTANCE_OPTIONS, resolveInstance } from "../instance.ts";
import { Supervisor } from "../supervisor/supervisor.ts";
import { END_SIGNALS } from "../system/process.ts";

export const supervise = defineCommand({
  usage: "supervise",
  summary: "Runs the supervisor of a background copy.",
  options: INSTANCE_OPTIONS,
  run: async ({ values }) => {
    // A signal may arrive during the start. Even then nothing is left behind.
    const told = new Promise<void>((resolve) => {
      for (const signal of END_SIGNALS) process.on(signal, () => resolve());
    });
    const supervisor = await Supervisor.start(resolveInstance(values, process.env), process.env, true);
    await told;
    await supervisor.stop();
    return 0;
  },
});
