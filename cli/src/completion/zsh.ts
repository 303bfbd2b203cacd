/** The completion script for zsh. Pure. */
import type { CommandModel, OptionModel, Value } from "./model.ts";
import { quoted } from "./quoted.ts";

export function zsh(commands: readonly CommandModel[]): string {
  return `#compdef svc
${[...commands, ...commands.flatMap((command) => command.commands.map((each) => below(command, each)))].map(functionOf).join("\n")}
${choice("_svc", commands)}
compdef _svc svc
`;
}

/** A command below another has both names. */
function below(parent: CommandModel, command: CommandModel): CommandModel {
  return { ...command, name: `${parent.name}_${command.name}` };
}

function functionOf(command: CommandModel): string {
  const name = `_svc_${command.name}`;
  if (command.commands.length > 0) return choice(name, command.commands);
  const specs = [...command.options.flatMap(optionSpecs), ...argumentSpecs(command.argument)];
  return `${name}() {
  _arguments -s ${specs.map(quoted).join(" \\\n    ")}
}`;
}

/** Offers the names of commands for the first word, and leaves the others to the command. */
function choice(name: string, commands: readonly CommandModel[]): string {
  const described = commands.map((command) => `    ${quoted(`${command.name}:${command.doc}`)}`);
  const cases = commands.map((command) => `    ${command.name}) ${name}_${command.name} ;;`);
  return `${name}() {
  local -a commands=(
${described.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
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

function argumentSpecs(value: Value): string[] {
  return value.kind === "other" ? [] : [`*:argument:${action(value)}`];
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
