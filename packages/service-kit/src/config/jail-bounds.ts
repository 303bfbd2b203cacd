/** The ranges in which each limit of a program must lie. jaild refuses values outside them. */

/** Programs do not start in less. */
export const MIN_RUN_MEMORY = 16 * 2 ** 20;
/** Of memory and of files. */
export const MAX_JAIL_BYTES = 2 ** 42;
export const MAX_PROCESSES = 32_768;
export const OPEN_FILES = { min: 16, max: 1_048_576 };
export const OUTPUT_BYTES = { min: 1024, max: 64 * 2 ** 20 };
