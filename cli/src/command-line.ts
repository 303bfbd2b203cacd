/** Finds the command of a ./svc and runs it. The exit code is the command's; 2 when the command line is not understood. */
import { CommanderError } from "commander";
import { type Commands, parserFor } from "./commands.ts";
import { splitRest } from "./options.ts";
import { Problem } from "./problem.ts";
import { paint } from "./terminal.ts";

/** `more`: commands beside those of an operator. */
export async function runCommandLine(more: Commands = {}): Promise<void> {
  // The reader has had enough (`./svc doctor | head -3`).
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });

  try {
    const { before, rest } = splitRest(process.argv.slice(2));
    const parser = await parserFor(before[0], rest, more);
    await parser.parseAsync(before.length === 0 ? ["--help"] : before, { from: "user" });
  } catch (error) {
    if (error instanceof Problem) show(error);
    // The only other end that is expected: help was asked for and is printed.
    else if (!(error instanceof CommanderError && error.exitCode === 0)) throw error;
  }
}

function show({ message, advice, exitCode }: Problem): void {
  process.stderr.write(`${paint(process.stderr, "red", "error:")} ${message}\n`);
  if (advice !== undefined) process.stderr.write(`${advice}\n`);
  process.exitCode = exitCode;
}
