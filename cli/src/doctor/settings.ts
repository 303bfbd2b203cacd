/** Checks the settings that the next ./svc up would use: the mode, what would be refused, and what would have no effect. */

import type { Instance } from "../instance.ts";
import { countKeys, describeMode, modeOf } from "../mode.ts";
import { Problem } from "../problem.ts";
import { refusedSettings, settingsWarnings } from "../settings/check.ts";
import type { Settings } from "../settings/sources.ts";
import { svcLine } from "../svc-line.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

export async function settings(instance: Instance, read: Settings): Promise<Finding[]> {
  const { unreadable } = read;
  if (unreadable !== undefined)
    return [
      warn("settings", `${unreadable} can only be read by its owner`, `Run: sudo ${svcLine("doctor")}`),
    ];
  const mode = modeOf(process.env);
  const fix = `See ${svcLine("config")} and docs/configuration.md.`;
  const refused = await refusedSettings(instance, process.env).then(
    (problems) => problems.map((problem) => fail("settings", problem, fix)),
    (error) => [unjudged(error, fix)],
  );
  return [
    ...(refused.length > 0 ? refused : [ok("settings", describeMode(mode, await countKeys(mode)))]),
    ...settingsWarnings(read, process.env, instance).map((warning) => warn("settings", warning, fix)),
  ];
}

/** The finding for an error that keeps the settings from being checked, such as secrets that others can read. */
function unjudged(error: unknown, fix: string): Finding {
  if (error instanceof Problem) return fail("settings", error.message, error.advice ?? fix);
  throw error;
}
