/** A model of what can follow on a command line, read from the declarations of the commands. Pure. */
import type { Command, Option as ParserOption } from "commander";
import { declaredValue, wordsOfArguments } from "../options.ts";

/** What is expected in the place of a value. `list` is several words, separated by commas. */
export type Value =
  | { kind: "word" | "list"; words: readonly string[] }
  | { kind: "file" | "folder" | "other" };

export interface OptionModel {
  /** `-l` and `--lang`, or the long one alone. */
  flags: readonly string[];
  doc: string;
  isRepeated: boolean;
  /** Absent for a switch. */
  value?: Value;
}

export interface CommandModel {
  name: string;
  doc: string;
  options: readonly OptionModel[];
  commands: readonly CommandModel[];
  /** What a positional argument may be. */
  argument: Value;
}

/** Models a program with its commands. Adds `help COMMAND`, which commander handles itself. */
export function modelOf(program: Command): CommandModel {
  const model = commandModel(program);
  const words = model.commands.map(({ name }) => name);
  const help = { name: "help", doc: "Shows the help of a command.", options: [], commands: [] };
  return { ...model, commands: [...model.commands, { ...help, argument: { kind: "word", words } }] };
}

function commandModel(command: Command): CommandModel {
  return {
    name: command.name(),
    doc: command.description(),
    options: command.createHelp().visibleOptions(command).map(optionModel),
    commands: command.commands.map(commandModel),
    argument: argumentOf(command),
  };
}

function argumentOf(command: Command): Value {
  const [argument] = command.registeredArguments;
  if (argument === undefined) return { kind: "other" };
  const words = wordsOfArguments(command);
  if (words !== undefined) return { kind: "word", words };
  return { kind: argument.name() === "FILE" ? "file" : "other" };
}

function optionModel(option: ParserOption): OptionModel {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    doc: option.description,
    isRepeated: option.parseArg !== undefined,
    ...(option.required ? { value: valueModel(option) } : {}),
  };
}

function valueModel(option: ParserOption): Value {
  const { value = "", words } = declaredValue(option);
  if (words !== undefined) return { kind: value === "LIST" ? "list" : "word", words };
  if (value === "FILE") return { kind: "file" };
  return { kind: value === "DIR" ? "folder" : "other" };
}
