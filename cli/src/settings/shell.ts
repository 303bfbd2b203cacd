import type { Environment } from "../settings.ts";

/** The shell's environment at the time when this module was loaded, before any command added to it. */
export const SHELL: Environment = { ...process.env };
