/**
 * Uniform messages about wrong fields, for all schemas: no text of the schema library reaches a caller. A schema's own messages
 * stay.
 */
import { z } from "zod";
import type { Problem } from "./errors.ts";

type Issue = z.core.$ZodRawIssue;

const TYPES: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "an object",
  record: "an object",
  array: "a list",
  null: "null",
};

export function problemText(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is required";
      return `must be ${TYPES[issue.expected] ?? "of another type"}`;
    case "invalid_value":
      return `must be ${oneOf(issue.values)}`;
    case "too_small":
      return sizeText("at least", issue.origin, Number(issue.minimum), issue.inclusive === false);
    case "too_big":
      return sizeText("at most", issue.origin, Number(issue.maximum), issue.inclusive === false);
    case "unrecognized_keys":
      return "has fields that are not known";
    case "invalid_union":
      return issue.input === undefined ? "is required" : "has none of the forms that are allowed";
    default:
      return issue.input === undefined ? "is required" : "is not valid";
  }
}

function oneOf(values: readonly unknown[]): string {
  const shown = values.map((value) => JSON.stringify(value));
  return shown.length === 1 ? `${shown[0]}` : `one of ${shown.join(", ")}`;
}

const UNITS: Readonly<Record<string, string>> = { string: "character", array: "item", set: "item" };

function sizeText(bound: "at least" | "at most", origin: string, limit: number, isOpen: boolean): string {
  const unit = UNITS[origin];
  if (unit !== undefined) {
    if (bound === "at least" && limit === 1 && origin === "string") return "must not be empty";
    return `must have ${bound} ${limit} ${limit === 1 ? unit : `${unit}s`}`;
  }
  if (isOpen) return bound === "at least" ? `must be more than ${limit}` : `must be less than ${limit}`;
  return `must be ${bound} ${limit}`;
}

// Set globally, so that no caller of a parser can forget it.
z.config({ customError: problemText });

/** The path of a field in the form that callers see: `files[2].name`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const key of path) {
    if (/^\d+$/.test(String(key))) text += `[${String(key)}]`;
    else text += text === "" ? String(key) : `.${String(key)}`;
  }
  return text;
}

/** The problems of a value that does not match its schema. `path`: the position of the value. */
export function problemsOf(error: z.ZodError, path: readonly PropertyKey[] = []): Problem[] {
  return error.issues.map((issue) => ({
    path: fieldPath([...path, ...issue.path]),
    problem: issue.message,
  }));
}
