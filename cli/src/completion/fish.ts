/** The completion script for fish. Pure. */
import type { CommandModel, OptionModel, Value } from "./model.ts";
import { quoted } from "./quoted.ts";

export function fish(commands: readonly CommandModel[]): string {
  const none = `not ${seen(commands)}`;
  const lines = ["complete -c svc -f", ...commands.map((command) => nameLine(none, command))];
  return `${[...lines, ...commands.flatMap(commandLines)].join("\n")}\n`;
}

const seen = (commands: readonly CommandModel[]) =>
  `__fish_seen_subcommand_from ${commands.map(({ name }) => name).join(" ")}`;

const nameLine = (when: string, { name, doc }: CommandModel) =>
  `complete -c svc -n ${quoted(when)} -f -a ${name} -d ${quoted(doc)}`;

function commandLines(command: CommandModel): string[] {
  const when = seen([command]);
  const open = `${when}; and not ${seen(command.commands)}`;
  return [
    ...command.commands.map((each) => nameLine(open, each)),
    ...command.options.map((option) => optionLine(command.commands.length === 0 ? when : open, option)),
    ...argumentLines(when, command),
    ...command.commands.flatMap((each) =>
      each.options.map((option) => optionLine(`${when}; and ${seen([each])}`, option)),
    ),
  ];
}

function optionLine(when: string, { flags, doc, value }: OptionModel): string {
  const names = flags.map((flag) => flag.replace(/^--/, "-l ").replace(/^-(?=\w$)/, "-s "));
  const taken = value === undefined ? "" : ` ${given(value)}`;
  return `complete -c svc -n ${quoted(when)} ${names.join(" ")}${taken} -d ${quoted(doc)}`;
}

function argumentLines(when: string, { commands, argument }: CommandModel): string[] {
  if (commands.length > 0 || argument.kind === "other") return [];
  if (argument.kind === "file") return [`complete -c svc -n ${quoted(when)} -F`];
  return [`complete -c svc -n ${quoted(when)} ${given(argument).replace("-x", "-f")}`];
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
