/** The commands of ./svc by name. A command's modules are loaded when it is used. A working copy adds its own (tools/). */
import { Command as Parser } from "commander";
import type { Command } from "./command.ts";
import { addOptions, strict } from "./options.ts";

export type Commands = Readonly<Record<string, () => Promise<Command>>>;

const COMMANDS: Commands = {
  up: async () => (await import("./commands/up.ts")).up,
  down: async () => (await import("./commands/down.ts")).down,
  exec: async () => (await import("./commands/exec.ts")).exec,
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
  install: async () => (await import("./commands/install.ts")).install,
  uninstall: async () => (await import("./commands/uninstall.ts")).uninstall,
};

/** Started by `up -d` only. */
const HIDDEN: Commands = {
  supervise: async () => (await import("./commands/supervise.ts")).supervise,
};

/** A parser that has the named command; for any other name it has all, to list or suggest them. */
export async function parserFor(
  name: string | undefined,
  rest: string[] = [],
  more: Commands = {},
): Promise<Parser> {
  const all = () => parserFor(undefined, [], more);
  const commands: Commands = {
    ...COMMANDS,
    ...more,
    completion: async () => (await import("./commands/completion.ts")).completionOf(all),
  };
  const program = addOptions(strict(new Parser("./svc")), {})
    .description("Runs untrusted code in single-use jails and returns output and files.")
    .helpCommand("help [COMMAND]", "Shows the help of a command.")
    .addHelpText("after", "\n./svc COMMAND --help says more.");
  const one = name === undefined ? undefined : new Map(Object.entries({ ...commands, ...HIDDEN })).get(name);
  const load = one === undefined ? Object.values(commands) : [one];
  for (const command of await Promise.all(load.map((each) => each()))) command.addTo(program, rest);
  return program;
}
