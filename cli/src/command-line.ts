/** Finds the command of a ./svc and runs it. The exit code is the command's; 2 when the command line is not understood. */
import { CommanderError } from "commander";
import { type Commands, parserFor } from "./commands.ts";
import { splitRest } from "./options.ts";
import type { Problem } from "./problem.ts";
import { paint, printable } from "./terminal.ts";
import { problemOf } from "./unexpected.ts";

/** `more`: commands beside the operator's. No error shows an operator a stack trace. */
export async function runCommandLine(more: Commands = {}): Promise<void> {
  // The reader has had enough (`./svc doctor | head -3`).
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
  // Both end the process, as they do without us: its state is unknown.
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    process.on(event, (error: unknown) => {
      show(problemOf(error));
      process.exit();
    });
  }

  try {
    const { before, rest } = splitRest(process.argv.slice(2));
    const parser = await parserFor(before[0], rest, more);
    await parser.parseAsync(before.length === 0 ? ["--help"] : before, { from: "user" });
  } catch (error) {
    // Help or version were asked for and are printed.
    if (error instanceof CommanderError && error.exitCode === 0) return;
    show(problemOf(error));
  }
}

function show({ message, advice, exitCode }: Problem): void {
  process.stderr.write(`${paint(process.stderr, "red", "error:")} ${printable(message)}\n`);
  if (advice !== undefined) process.stderr.write(`${printable(advice)}\n`);
  process.exitCode = exitCode;
}
