/** `./svc status`: says whether the copy of a data folder runs, and in what state it is. Changes nothing. */
import { defineCommand } from "../command.ts";
import { INSTANCE_OPTIONS } from "../instance.ts";
import { findCopy } from "../running-copy.ts";
import { statusOf } from "../status/status.ts";
import { statusText } from "../status/text.ts";
import { printable, printJson } from "../terminal.ts";

const EXIT_CODES = { ready: 0, not_ready: 1, not_running: 3 } as const;

export const status = defineCommand({
  usage: "status [--json]",
  summary: "Says whether it runs and is ready: mode, address, components, slots, queues, version.",
  details: `
Exit codes: 0 ready; 1 not ready; 3 not running.`,
  options: { json: { doc: "Print it as JSON." }, ...INSTANCE_OPTIONS },
  run: async ({ values }) => {
    const found = await statusOf(findCopy(values), process.env.SVC_METRICS_TOKEN ?? "");
    if (values.json) printJson(found);
    else process.stdout.write(printable(statusText(found)));
    return EXIT_CODES[found.status];
  },
});
