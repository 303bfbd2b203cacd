/** Whether all Python programs of a test file start warm: warm-mode.test.ts switches it on for the files that it repeats. */
export const mode = { warm: false };
