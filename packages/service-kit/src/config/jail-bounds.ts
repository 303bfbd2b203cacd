/** The valid ranges of a program's limits. jaild refuses values outside them. */

/** Programs do not start with less memory. */
export const MIN_RUN_MEMORY = 16 * 2 ** 20;
/** For memory and for files. */
export const MAX_JAIL_BYTES = 2 ** 42;
export const MAX_PROCESSES = 32_768;
export const OPEN_FILES = { min: 16, max: 1_048_576 };
export const OUTPUT_BYTES = { min: 1024, max: 64 * 2 ** 20 };
