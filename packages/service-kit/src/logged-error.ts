/**
 * What the log contains of an error: its type, code and stack, and its message without text from callers. All other fields are left
 * out. Some of them, such as `details` or the command that Redis refused, contain names of files, tenants and users.
 */
import { ERRORS, ServiceError } from "@svc/contracts";

/** Most nested causes of an error. */
const MAX_CAUSES = 5;
const MAX_TEXT = 500;
/** From the first to the last quotation mark, because quoted text may contain quotation marks. Apostrophes within words do not count. */
const QUOTED = /(?<![A-Za-z])["'`].*["'`]/s;

/** Converts anything that was caught. A value that is not an Error stays as it is. */
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
  // Messages of a SyntaxError quote the parsed text in various ways.
  if (error instanceof SyntaxError) return "the text cannot be read";
  if (!(error instanceof Error)) return String(error);
  const { issues } = error as { issues?: unknown };
  if (Array.isArray(issues)) return `not as expected: ${issues.map((issue) => issue?.code).join(", ")}`;
  return error.message.replace(QUOTED, "…").slice(0, MAX_TEXT);
}

/** The stack frames only: a stack begins with the message, which may quote a caller. */
export function framesOf({ stack = "", message }: Error): string {
  const behind = stack.indexOf(message) + message.length;
  const frames = stack.slice(behind).split("\n");
  return frames.filter((line) => /^\s+at /.test(line)).join("\n");
}
