/** The commands of ./svc by name. A command's modules are loaded when it is used. */
import { Command as Parser } from "commander";
import type { Command } from "./command.ts";
import { addOptions, strict } from "./options.ts";

const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  up: async () => (await import("./commands/up.ts")).up,
  down: async () => (await import("./commands/down.ts")).down,
  exec: async () => (await import("./commands/exec.ts")).exec,
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
  test: async () => (await import("./commands/test.ts")).test,
  bench: async () => (await import("@svc/bench/command")).bench,
  completion: async () => (await import("./commands/completion.ts")).completionOf(() => parserFor(undefined)),
};

/** Started by `up -d` only. */
const HIDDEN: Readonly<Record<string, () => Promise<Command>>> = {
  supervise: async () => (await import("./commands/supervise.ts")).supervise,
};

/** A parser that has the named command; for any other name it has all, to list or suggest them. */
export async function parserFor(name: string | undefined, rest: string[] = []): Promise<Parser> {
  const program = addOptions(strict(new Parser("./svc")), {})
    .description("Runs untrusted code in single-use jails and returns output and files.")
    .helpCommand("help [COMMAND]", "Shows the help of a command.")
    .addHelpText("after", "\n./svc COMMAND --help says more.");
  const one = name === undefined ? undefined : new Map(Object.entries({ ...COMMANDS, ...HIDDEN })).get(name);
  const load = one === undefined ? Object.values(COMMANDS) : [one];
  for (const command of await Promise.all(load.map((each) => each()))) command.addTo(program, rest);
  return program;
}
