/** The schema of a program's arguments, for callers' requests and for the runner's. */
import { z } from "zod";

const MAX_ARGS = 256;

const MAX_ARG_BYTES = 100_000;

/** The program gets these arguments unchanged. */
export const argsSchema = z
  .array(
    z
      .string()
      .refine((arg) => !arg.includes("\0"), "must not contain NUL")
      .refine((arg) => Buffer.byteLength(arg) <= MAX_ARG_BYTES, `must have at most ${MAX_ARG_BYTES} bytes`),
    "must be a list of strings",
  )
  .max(MAX_ARGS, `must have at most ${MAX_ARGS} items`);
