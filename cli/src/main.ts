/** ./svc: finds the command and runs it. The exit code is the command's; 2 when the command line is not understood. */
import { nearestName } from "@svc/service-kit/config/nearest";
import type { Command } from "./command.ts";
import { Problem, USAGE_EXIT_CODE } from "./problem.ts";
import { paint } from "./terminal.ts";

const COMMANDS: Record<string, () => Promise<Command>> = {
  up: async () => (await import("./commands/up.ts")).up,
  down: async () => (await import("./commands/down.ts")).down,
  exec: async () => (await import("./commands/exec.ts")).exec,
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
  test: async () => (await import("./commands/test.ts")).test,
  bench: async () => (await import("@svc/bench/command")).bench,
};

/** Started by `up -d` only. */
const HIDDEN: Record<string, () => Promise<Command>> = {
  supervise: async () => (await import("./commands/supervise.ts")).supervise,
};

async function help(): Promise<string> {
  const lines = await Promise.all(
    Object.values(COMMANDS).map(async (load) => {
      const command = await load();
      return `  ./svc ${command.usage}\n      ${command.summary}`;
    }),
  );
  return `Runs untrusted code in single-use jails and returns output and files.\n\n${lines.join("\n")}\n\n./svc COMMAND --help says more.\n`;
}

async function main(argv: readonly string[]): Promise<number> {
  const [name = "--help", ...rest] = argv;
  if (name === "--help" || name === "-h" || name === "help") {
    process.stdout.write(await help());
    return 0;
  }
  const load = COMMANDS[name] ?? HIDDEN[name];
  if (load === undefined) {
    const nearest = nearestName(name, Object.keys(COMMANDS));
    throw new Problem(`unknown command ${name}; did you mean ./svc ${nearest}?`, undefined, USAGE_EXIT_CODE);
  }
  return (await load()).main(rest);
}

// The reader has had enough (`./svc doctor | head -3`).
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  process.stderr.write(`${paint(process.stderr, "red", "error:")} ${error.message}\n`);
  if (error.advice !== undefined) process.stderr.write(`${error.advice}\n`);
  process.exitCode = error.exitCode;
}
