/** The completion script for fish. Pure. */
import type { CommandModel, OptionModel, Value } from "./model.ts";
import { quoted } from "./quoted.ts";

/** `__svc_at`: true when the words before the cursor are exactly these. `__svc_in`: true when they begin with these. */
const CONDITIONS = `function __svc_at
  set -l words (commandline -opc)
  set -e words[1]
  test "$words" = "$argv"
end
function __svc_in
  set -l words (commandline -opc)
  set -e words[1]
  set -l most (count $argv)
  test "$words[1..$most]" = "$argv"
end
complete -c svc -f`;

export function fish(program: CommandModel): string {
  return `${[CONDITIONS, ...linesOf([], program)].join("\n")}\n`;
}

/** `path`: the names of the parent commands and of the command itself. */
function linesOf(path: readonly string[], { commands, options, argument }: CommandModel): string[] {
  const when = ["-n", quoted([commands.length > 0 ? "__svc_at" : "__svc_in", ...path].join(" "))].join(" ");
  return [
    ...commands.map(({ name, doc }) => `complete -c svc ${when} -a ${name} -d ${quoted(doc)}`),
    ...options.map((option) => optionLine(when, option)),
    ...(commands.length > 0 ? [] : argumentLines(when, argument)),
    ...commands.flatMap((command) => linesOf([...path, command.name], command)),
  ];
}

function optionLine(when: string, { flags, doc, value }: OptionModel): string {
  const names = flags.map((flag) => flag.replace(/^--/, "-l ").replace(/^-(?=\w$)/, "-s "));
  const taken = value === undefined ? "" : ` ${given(value)}`;
  return `complete -c svc ${when} ${names.join(" ")}${taken} -d ${quoted(doc)}`;
}

function argumentLines(when: string, argument: Value): string[] {
  if (argument.kind === "other") return [];
  if (argument.kind === "file") return [`complete -c svc ${when} -F`];
  return [`complete -c svc ${when} ${given(argument).replace("-x", "-f")}`];
}

function given(value: Value): string {
  switch (value.kind) {
    case "word":
      return `-x -a ${quoted(value.words.join(" "))}`;
    case "list":
      return `-x -a ${quoted(`(__fish_append , ${value.words.join(" ")})`)}`;
    case "file":
      return "-r -F";
    case "folder":
      return "-x -a '(__fish_complete_directories)'";
    default:
      return "-x";
  }
}
