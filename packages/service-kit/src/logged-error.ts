/**
 * What the log says of an error: its kind, code and place, and its message without a word of a caller. What else an error carries, as
 * `details` or the command that Redis refused, holds names of files, tenants and users, and is left out.
 */
import { ERRORS, ServiceError } from "@svc/contracts";

/** An error within an error within an error. */
const MAX_CAUSES = 5;
const MAX_TEXT = 500;
/** From the first quotation mark to the last one, which a quoted text may hold itself. An apostrophe is none. */
const QUOTED = /(?<![A-Za-z])["'`].*["'`]/s;

/** Of anything that was caught; what is no error is as it is. */
export function loggedError(error: unknown, textOf: (error: Error) => string = errorText): unknown {
  return logged(error, textOf, MAX_CAUSES);
}

function logged(error: unknown, textOf: (error: Error) => string, left: number): unknown {
  if (!(error instanceof Error)) return error;
  const { code, status } = error as { code?: unknown; status?: unknown };
  return {
    type: error.name,
    message: textOf(error),
    code,
    status,
    stack: framesOf(error),
    ...(error.cause === undefined || left === 0 ? {} : { cause: logged(error.cause, textOf, left - 1) }),
  };
}

/** The message of an error as the log may show it. */
export function errorText(error: unknown): string {
  if (error instanceof ServiceError) return ERRORS[error.code].message;
  // It repeats, in various ways, the text that was read.
  if (error instanceof SyntaxError) return "the text cannot be read";
  if (!(error instanceof Error)) return String(error);
  const { issues } = error as { issues?: unknown };
  if (Array.isArray(issues)) return `not as expected: ${issues.map((issue) => issue?.code).join(", ")}`;
  return error.message.replace(QUOTED, "…").slice(0, MAX_TEXT);
}

/** The lines of a stack that say where; its first ones are the message. */
export function framesOf({ stack = "", message }: Error): string {
  const behind = stack.indexOf(message) + message.length;
  const frames = stack.slice(behind).split("\n");
  return frames.filter((line) => /^\s+at /.test(line)).join("\n");
}
