/** The installed languages as plain text for a model, short enough for the definition of a tool. Pure. */
import { byteSize, duration, type LanguageInfo } from "@svc/contracts";

const MAX_BYTES = 4000;
const MAX_PACKAGES_BYTES = 2200;
const MAX_COMMANDS_BYTES = 600;

export function languagesText(languages: readonly LanguageInfo[]): string {
  const ready = languages.filter(({ status }) => status === "ready");
  const lines = [
    "Programs run in a sandbox. The working directory is /mnt/data: input files are there, and files written there are returned.",
    "There is no network, and nothing can be installed. Print what you want to see.",
    "",
    `Languages: ${ready.map(({ name, version }) => `${name} ${version}`).join(", ")}.`,
    ...ready.filter(({ packages }) => packages.length > 0).map(packagesLine),
    ...commandsLine(ready),
    ...limitsLines(ready),
  ];
  return `${cut(lines.join("\n"), MAX_BYTES)}\n`;
}

function packagesLine({ name, packages }: LanguageInfo): string {
  const versions = packages.map((one) => `${one.name} ${one.version}`);
  const names = packages.map((one) => one.name);
  // A model does not use a package that is not named, so versions are dropped before names.
  const shown = bytesOf(versions) <= MAX_PACKAGES_BYTES ? versions : names;
  return `Packages of ${name}: ${listed(shown, MAX_PACKAGES_BYTES)}.`;
}

function commandsLine(ready: readonly LanguageInfo[]): string[] {
  const commands = [...new Set(ready.flatMap((language) => language.commands))].sort();
  return commands.length === 0 ? [] : [`Commands: ${listed(commands, MAX_COMMANDS_BYTES)}.`];
}

/** One line for all languages that have the same limits. */
function limitsLines(ready: readonly LanguageInfo[]): string[] {
  const byText = new Map<string, string[]>();
  for (const { name, limits } of ready) {
    if (limits === undefined) continue;
    const text = [
      duration(limits.run_timeout_ms),
      `${byteSize(limits.memory_bytes)} of memory`,
      `${byteSize(limits.output_bytes)} of each output stream`,
      `${limits.files} returned files of ${byteSize(limits.file_bytes)} at most`,
      `${limits.processes} processes`,
    ].join(", ");
    byText.set(text, [...(byText.get(text) ?? []), name]);
  }
  return [...byText].map(([text, names]) =>
    byText.size === 1 ? `Limits of a run: ${text}.` : `Limits of a run (${names.join(", ")}): ${text}.`,
  );
}

const SEPARATOR_BYTES = 2;
const bytesOf = (names: readonly string[]) =>
  names.reduce((sum, name) => sum + Buffer.byteLength(name) + SEPARATOR_BYTES, 0);

function listed(names: readonly string[], maxBytes: number): string {
  const shown: string[] = [];
  let bytes = 0;
  for (const name of names) {
    bytes += Buffer.byteLength(name) + SEPARATOR_BYTES;
    if (bytes > maxBytes) return `${shown.join(", ")} and ${names.length - shown.length} more`;
    shown.push(name);
  }
  return shown.join(", ");
}

/** Cuts to at most `maxBytes` without splitting a character: a streaming decoder holds back an incomplete one. */
function cut(text: string, maxBytes: number): string {
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes), { stream: true });
}
