/** The project's own commands. Where this folder exists, ./svc offers them beside the operator's. */
import type { Commands } from "@svc/cli/commands";

export const COMMANDS: Commands = {
  test: async () => (await import("./testing/command.ts")).test,
  bench: async () => (await import("./bench/command.ts")).bench,
  scaling: async () => (await import("./scaling/command.ts")).scaling,
};
