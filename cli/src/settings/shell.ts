import type { Environment } from "../settings.ts";

/** The shell's environment, as it was when this module was loaded: no command has added anything to it. */
export const SHELL: Environment = { ...process.env };
