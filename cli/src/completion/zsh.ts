/** The completion script for zsh. Pure. */
import type { CommandModel, OptionModel, Value } from "./model.ts";
import { quoted } from "./quoted.ts";

export function zsh(program: CommandModel): string {
  const all = program.commands.flatMap((command) => [
    command,
    ...command.commands.map((each) => below(command, each)),
  ]);
  return `#compdef svc
${all.map(functionOf).join("\n")}
${choice("_svc", program)}
compdef _svc svc
`;
}

/** A subcommand is named by both names. */
function below(parent: CommandModel, command: CommandModel): CommandModel {
  return { ...command, name: `${parent.name}_${command.name}` };
}

function functionOf(command: CommandModel): string {
  const name = `_svc_${command.name}`;
  if (command.commands.length > 0) return choice(name, command);
  const specs = [...command.options.flatMap(optionSpecs), ...argumentSpecs(command.argument)];
  return `${name}() {
  _arguments -s -S ${specs.map(quoted).join(" \\\n    ")}
}`;
}

/** Offers the names of commands, or the options, for the first word. The following words are left to the command. */
function choice(name: string, { commands, options }: CommandModel): string {
  const described = (text: string, doc: string) => `    ${quoted(`${text}:${doc}`)}`;
  const names = commands.map((command) => described(command.name, command.doc));
  const flags = options.flatMap((option) => option.flags.map((flag) => described(flag, option.doc)));
  const cases = commands.map((command) => `    ${command.name}) ${name}_${command.name} ;;`);
  return `${name}() {
  local -a commands=(
${names.join("\n")}
  )
  local -a options=(
${flags.join("\n")}
  )
  if (( CURRENT == 2 )); then
    if [[ $PREFIX == -* ]]; then _describe -o option options; else _describe command commands; fi
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join("\n")}
  esac
}`;
}

function optionSpecs({ flags, doc, isRepeated, value }: OptionModel): string[] {
  const told = `[${doc.replace(/[\\[\]:]/g, "\\$&")}]${value === undefined ? "" : `:value:${action(value)}`}`;
  return flags.map(
    (flag) =>
      `${isRepeated ? "*" : ""}${flag}${value !== undefined && flag.startsWith("--") ? "=" : ""}${told}`,
  );
}

/** When no argument is declared, zsh offers no options after an argument. */
function argumentSpecs(value: Value): string[] {
  return [`*:argument:${action(value)}`];
}

function action(value: Value): string {
  switch (value.kind) {
    case "word":
      return `(${value.words.join(" ")})`;
    case "list":
      return `_values -s , value ${value.words.join(" ")}`;
    case "file":
      return "_files";
    case "folder":
      return "_files -/";
    default:
      return " ";
  }
}
