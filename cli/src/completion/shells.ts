/** Completion scripts for interactive shells. While a user types, no ./svc runs and nothing on the line is evaluated. */
import type { Command } from "commander";
import { bash } from "./bash.ts";
import { fish } from "./fish.ts";
import { modelOf } from "./model.ts";
import { zsh } from "./zsh.ts";

/** Each makes the script of one shell, from a parser that has all commands. */
export const SHELLS: Readonly<Record<string, (program: Command) => string>> = {
  bash: (program) => bash(modelOf(program)),
  zsh: (program) => zsh(modelOf(program)),
  fish: (program) => fish(modelOf(program)),
};
