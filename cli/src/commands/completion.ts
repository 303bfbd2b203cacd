/** `./svc completion`: prints a script that completes commands, options and file names in an interactive shell. */
import type { Command as Parser } from "commander";
import { defineCommand } from "../command.ts";
import { SHELLS } from "../completion/shells.ts";
import { Problem, USAGE_EXIT_CODE } from "../problem.ts";

/** `parser`: returns a parser that has every command. */
export const completionOf = (parser: () => Promise<Parser>) =>
  defineCommand({
    usage: `completion ${Object.keys(SHELLS).join("|")}`,
    positionals: "[SHELL]",
    words: Object.keys(SHELLS),
    summary: "Prints a script that completes ./svc in a shell.",
    details: `
In ~/.bashrc:                  . <(/path/to/svc completion bash)
In ~/.zshrc, after compinit:   . <(/path/to/svc completion zsh)
In ~/.config/fish/config.fish: /path/to/svc completion fish | source`,
    options: {},
    run: async ({ positionals: [shell = ""] }) => {
      const write = new Map(Object.entries(SHELLS)).get(shell);
      if (write === undefined) {
        throw new Problem(
          `which shell? ./svc completion ${Object.keys(SHELLS).join("|")}`,
          undefined,
          USAGE_EXIT_CODE,
        );
      }
      process.stdout.write(write(await parser()));
      return 0;
    },
  });
