/**
 * `./svc config`: shows the effective value of each setting of this copy, its source, and what is invalid. Changes nothing.
 */
import { VARIABLES_BY_READER } from "@svc/service-kit/config/variables";
import { languagesOf } from "../capacity.ts";
import { defineCommand } from "../command.ts";
import { systemVariables } from "../environment.ts";
import { INSTANCE_OPTIONS, type Instance, PORTS } from "../instance.ts";
import { countKeys, describeMode, modeOf } from "../mode.ts";
import { secretsToCheck } from "../secrets.ts";
import { resolveChecked, settingsProblems, settingsWarnings } from "../settings/check.ts";
import { type Effective, effectiveSettings } from "../settings/effective.ts";
import type { Settings } from "../settings/sources.ts";
import type { Environment } from "../settings.ts";
import { sizedAnyway } from "../sizing.ts";
import { thisMachine } from "../system/memory.ts";
import { paint, printable, printJson } from "../terminal.ts";

export const config = defineCommand({
  usage: "config",
  summary: "Shows the settings: each value, its source and its default.",
  details: `
Sources, later wins: default, what ./svc sets for this machine, file (--settings FILE, SVC_SETTINGS_FILE, or svc.env in the
data folder), environment, flag. Secrets are shown as [set]. Shows what the next ./svc up would use.
Exit codes: 0; 1 when a setting is not valid.`,
  options: { json: { doc: "Print it as JSON." }, ...INSTANCE_OPTIONS },
  run: async ({ values }, settings) => {
    const instance = resolveChecked(values, process.env);
    const list = settingsOf(instance, settings, flagsOf(values));
    const problems = await settingsProblems(instance, settings.values);
    const warnings = settingsWarnings(settings, process.env, instance);
    const mode = await modeText(settings.values);
    if (values.json) {
      const file = settings.file ?? null;
      printJson({ mode, file, settings: list, warnings, problems });
    } else {
      console.log(`Mode: ${mode}\nFile: ${settings.file ?? "none"}`);
      print(list);
      for (const warning of warnings) console.error(`warning: ${warning}`);
      for (const problem of problems) console.error(`${paint(process.stderr, "red", "error:")} ${problem}`);
    }
    return problems.length === 0 ? 0 : 1;
  },
});

async function modeText(settings: Environment): Promise<string> {
  const mode = modeOf(settings);
  return describeMode(mode, await countKeys(mode));
}

/** The variables whose values come from command-line options. */
function flagsOf(values: { "data-dir": string | undefined; "port-offset": string | undefined }): Set<string> {
  return new Set([
    ...(values["data-dir"] === undefined ? [] : ["SVC_DATA_DIR"]),
    ...(values["port-offset"] === undefined ? [] : Object.values(PORTS).map(([variable]) => variable)),
  ]);
}

function settingsOf(instance: Instance, { values, fromFile }: Settings, fromFlags: Set<string>): Effective[] {
  const sizes = sizedAnyway(values, thisMachine(), languagesOf(instance));
  const given = systemVariables(instance, secretsToCheck(instance.dataDir), sizes.settings);
  return effectiveSettings({ given, set: values, fromFile, fromFlags });
}

const HEAD = { name: "variable", value: "value", source: "source", default: "default" };
const MOST_SHOWN = 60;

function print(list: readonly Effective[]): void {
  const shown = (text: string) => {
    const one = printable(text).replaceAll("\n", "\\n");
    return one.length > MOST_SHOWN ? `${one.slice(0, MOST_SHOWN - 1)}…` : one;
  };
  const cells = (row: Record<keyof typeof HEAD, string>) => [
    row.name,
    row.value || "-",
    row.source,
    row.default || "-",
  ];
  const rows = [HEAD, ...list].map((row) => cells(row).map(shown));
  const widths = HEAD_KEYS.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row
      .map((text, at) => text.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  const byName = new Map(list.map((row, at) => [row.name as string, rows[at + 1] ?? []]));
  console.log(`\n${paint(process.stdout, "dim", line(rows[0] ?? []))}`);
  for (const [reader, variables] of Object.entries(VARIABLES_BY_READER)) {
    console.log(`\n${paint(process.stdout, "bold", reader.replaceAll("`", ""))}`);
    for (const name of Object.keys(variables)) console.log(line(byName.get(name) ?? []));
  }
}

const HEAD_KEYS = Object.keys(HEAD);
