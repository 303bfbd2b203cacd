/** The commands of ./svc by name. A command's modules are loaded when it is used. A working copy adds its own (tools/). */
import { Command as Parser } from "commander";
import type { Command } from "./command.ts";
import { addOptions, strict } from "./options.ts";
import { versionOf, versionText } from "./version.ts";

export type Commands = Readonly<Record<string, () => Promise<Command>>>;

const COMMANDS: Commands = {
  up: async () => (await import("./commands/up.ts")).up,
  status: async () => (await import("./commands/status.ts")).status,
  restart: async () => (await import("./commands/restart.ts")).restart,
  down: async () => (await import("./commands/down.ts")).down,
  exec: async () => (await import("./commands/exec.ts")).exec,
  mcp: async () => (await import("./commands/mcp.ts")).mcp,
  config: async () => (await import("./commands/config.ts")).config,
  key: async () => (await import("./commands/key.ts")).key,
  token: async () => (await import("./commands/token.ts")).token,
  librechat: async () => (await import("./commands/librechat.ts")).librechat,
  logs: async () => (await import("./commands/logs.ts")).logs,
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
  install: async () => (await import("./commands/install.ts")).install,
  uninstall: async () => (await import("./commands/uninstall.ts")).uninstall,
};

/** Started by `up -d` only. */
const HIDDEN: Commands = {
  supervise: async () => (await import("./commands/supervise.ts")).supervise,
};

const FOR_DEVELOPERS = "For developers:";

/**
 * Returns a parser that has the named command. For any other name the parser has all commands, to list or suggest them.
 * `more`: commands for developers.
 */
export async function parserFor(
  name: string | undefined,
  rest: string[] = [],
  more: Commands = {},
): Promise<Parser> {
  const all = () => parserFor(undefined, [], more);
  const commands: Commands = {
    ...COMMANDS,
    completion: async () => (await import("./commands/completion.ts")).completionOf(all),
    ...more,
  };
  const program = addOptions(strict(new Parser("./svc")), {})
    .description("Runs untrusted code in single-use jails and returns output and files.")
    .usage("COMMAND [OPTION…]")
    .version(versionText(versionOf()), "-V, --version", "Show version and commit.")
    .helpCommand("help [COMMAND]", "Shows the help of a command.")
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addHelpText("after", "\n./svc COMMAND --help says more.");
  const one = name === undefined ? undefined : new Map(Object.entries({ ...commands, ...HIDDEN })).get(name);
  const load = one === undefined ? Object.values(commands) : [one];
  for (const command of await Promise.all(load.map((each) => each()))) command.addTo(program, rest);
  for (const command of program.commands) if (command.name() in more) command.helpGroup(FOR_DEVELOPERS);
  return program;
}
