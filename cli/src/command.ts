/** The shape of a command of ./svc. Each command is one file in commands/ and one row in main.ts. */
import { asksForHelp, type Options, optionHelp, type Parsed, parseOptions } from "./options.ts";

export interface CommandSpec<T extends Options> {
  /** What follows `./svc ` in the usage line. */
  usage: string;
  summary: string;
  /** More lines of help: examples, exit codes. */
  details?: string;
  options: T;
  /** Answers the exit code. */
  run: (parsed: Parsed<T>) => Promise<number>;
}

export interface Command {
  usage: string;
  summary: string;
  main: (argv: readonly string[]) => Promise<number>;
}

export function defineCommand<const T extends Options>(spec: CommandSpec<T>): Command {
  return {
    usage: spec.usage,
    summary: spec.summary,
    main: async (argv) => {
      if (asksForHelp(argv)) {
        process.stdout.write(help(spec));
        return 0;
      }
      return spec.run(parseOptions(argv, spec.options));
    },
  };
}

function help(spec: CommandSpec<Options> | Omit<CommandSpec<Options>, "run">): string {
  const details = spec.details === undefined ? "" : `\n${spec.details.trim()}\n`;
  return `Usage: ./svc ${spec.usage}\n\n${spec.summary}\n\nOptions:\n${optionHelp(spec.options)}\n${details}`;
}
