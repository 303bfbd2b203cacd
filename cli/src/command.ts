/** The shape of a command of ./svc. Each command is one file in commands/ and one row in commands.ts. */
import type { Command as Parser } from "commander";
import {
  addArguments,
  addOptions,
  argumentsOf,
  type Options,
  type Parsed,
  strict,
  valuesOf,
} from "./options.ts";
import {
  adoptSettings,
  mergeSettings,
  readSettings,
  type Settings,
  type SettingsFlags,
} from "./settings/sources.ts";
import { asTyped, meanCopy } from "./svc-line.ts";

export interface CommandSpec<T extends Options> {
  /** What follows `./svc ` in the usage line, the command's name first. */
  usage: string;
  /** Positional arguments in commander's form, such as `[FILE...]`. Without it the command takes none. */
  positionals?: string;
  /** Values that shell completion may offer for the positional arguments. */
  words?: readonly string[];
  summary: string;
  /** More lines of help: examples, exit codes. */
  details?: string;
  options: T;
  /** Returns the exit code. When the command has the options of an instance, `process.env` also holds the values of the settings file. */
  run: (parsed: Parsed<T>, settings: Settings) => Promise<number>;
}

export interface Command {
  /** Adds the command to a parser; its exit code becomes the process's. `rest` is what follows `--`. */
  addTo: (program: Parser, rest?: string[]) => void;
}

export function defineCommand<const T extends Options>(spec: CommandSpec<T>): Command {
  const [name = "", ...usage] = spec.usage.split(" ");
  return {
    addTo: (program, rest = []) => {
      const parser = addOptions(strict(program.command(name)), spec.options);
      parser.description(spec.summary).usage(usage.join(" "));
      if (spec.positionals !== undefined) addArguments(parser, spec.positionals, spec.words);
      if (spec.details !== undefined) parser.addHelpText("after", `\n${asTyped(spec.details.trim())}`);
      parser.action(async () => {
        const values = valuesOf(parser, spec.options);
        const positionals = argumentsOf(parser);
        const settings = settingsFor(spec.options, values);
        process.exitCode = await spec.run({ values, positionals, rest }, settings);
      });
    },
  };
}

/** A command that concerns no copy reads no settings file. */
function settingsFor(options: Options, values: SettingsFlags): Settings {
  if (!Object.hasOwn(options, "settings")) return mergeSettings(new Map(), undefined, process.env);
  meanCopy(values, process.env);
  const settings = readSettings(values, process.env);
  adoptSettings(settings);
  return settings;
}
