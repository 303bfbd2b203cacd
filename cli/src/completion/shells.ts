/**
 * Completion scripts for interactive shells. Nothing of ./svc runs and nothing of the line is evaluated while a user types.
 */
import type { Command } from "commander";
import { bash } from "./bash.ts";
import { fish } from "./fish.ts";
import { modelOf } from "./model.ts";
import { zsh } from "./zsh.ts";

/** Each makes the script of one shell. */
export const SHELLS: Readonly<Record<string, (commands: readonly Command[]) => string>> = {
  bash: (commands) => bash(modelOf(commands)),
  zsh: (commands) => zsh(modelOf(commands)),
  fish: (commands) => fish(modelOf(commands)),
};
