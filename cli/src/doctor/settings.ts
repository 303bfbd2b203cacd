/** The settings that the next ./svc up would use: the mode, and what would be refused. */

import type { Instance } from "../instance.ts";
import { countKeys, describeMode, modeOf } from "../mode.ts";
import { refusedSettings } from "../settings/check.ts";
import type { Settings } from "../settings/sources.ts";
import { svcLine } from "../svc-line.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

export async function settings(instance: Instance, { unreadable }: Settings): Promise<Finding[]> {
  if (unreadable !== undefined)
    return [
      warn("settings", `${unreadable} can only be read by its owner`, `Run: sudo ${svcLine("doctor")}`),
    ];
  const problems = await refusedSettings(instance, process.env);
  const mode = modeOf(process.env);
  if (problems.length === 0) return [ok("settings", describeMode(mode, await countKeys(mode)))];
  return problems.map((problem) =>
    fail("settings", problem, `See ${svcLine("config")} and docs/configuration.md.`),
  );
}
