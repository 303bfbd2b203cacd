/** The project's own commands, which ./svc has beside the operator's where this folder is. */
import type { Commands } from "@svc/cli/commands";

export const COMMANDS: Commands = {
  test: async () => (await import("./testing/command.ts")).test,
  bench: async () => (await import("./bench/command.ts")).bench,
  scaling: async () => (await import("./scaling/command.ts")).scaling,
};
