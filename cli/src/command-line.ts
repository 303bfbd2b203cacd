/** Finds the command of a ./svc and runs it. The exit code is the command's; 2 when the command line is not understood. */
import { type Command, CommanderError } from "commander";
import { type Commands, parserFor } from "./commands.ts";
import { splitRest, unknownCommand } from "./options.ts";
import type { Problem } from "./problem.ts";
import { paint, printable } from "./terminal.ts";
import { problemOf } from "./unexpected.ts";

/** `more`: commands in addition to the operator's. An error never shows an operator a stack trace. */
export async function runCommandLine(more: Commands = {}): Promise<void> {
  // The reader has closed the pipe (`./svc doctor | head -3`).
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
  // Nobody reads the messages on stderr. That is no reason to leave the work half done.
  process.stderr.on("error", () => undefined);
  // Both events end the process, as they do by default, because its state is unknown.
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    process.on(event, (error: unknown) => {
      show(problemOf(error));
      process.exit();
    });
  }

  try {
    const { before, rest } = splitRest(process.argv.slice(2));
    const parser = await parserFor(before[0], rest, more);
    demandKnownTopic(before, parser);
    await parser.parseAsync(before.length === 0 ? ["--help"] : before, { from: "user" });
  } catch (error) {
    // The help or the version was requested and is printed.
    if (error instanceof CommanderError && error.exitCode === 0) return;
    show(problemOf(error));
  }
}

/** The parser itself answers `help NONSENSE` with the help of ./svc. */
function demandKnownTopic([help, topic]: readonly string[], parser: Command): void {
  if (help !== "help" || topic === undefined || topic.startsWith("-")) return;
  if (topic !== "help" && !parser.commands.some((command) => command.name() === topic))
    throw unknownCommand(topic, parser);
}

function show({ message, advice, exitCode }: Problem): void {
  process.stderr.write(`${paint(process.stderr, "red", "error:")} ${printable(message)}\n`);
  if (advice !== undefined) process.stderr.write(`${printable(advice)}\n`);
  process.exitCode = exitCode;
}
