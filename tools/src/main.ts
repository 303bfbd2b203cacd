/** ./svc of a working copy: what operators have, and the project's own commands. */
import { runCommandLine } from "@svc/cli/command-line";
import { COMMANDS } from "./commands.ts";

await runCommandLine(COMMANDS);
