/**
 * Environment variables that a caller sets for a program, as `NAME=value` strings for the jail. Only the program reads
 * them, whatever their names. Names that the service reserves for itself are refused.
 */
import { z } from "zod";
import type { Problem } from "./errors.ts";

export const ENV_LIMITS = { variables: 64, valueBytes: 8 * 1024, totalBytes: 64 * 1024 } as const;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const MAX_NAME_CHARS = 256;
const RESERVED = ["SVC_", "SANDBOX_"];
const MAX_SHOWN_CHARS = 64;

/** The form in the queue and in runner requests. `parseEnvironment` checks names and sizes where the API reads the request. */
export const environmentSchema = z
  .array(
    z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*=/, "must be NAME=value")
      .refine((variable) => !variable.includes("\0"), "must not contain NUL"),
  )
  .max(ENV_LIMITS.variables);

/** The variables of a request, or what is wrong with each. */
export function parseEnvironment(env: Readonly<Record<string, unknown>>): {
  variables: string[];
  problems: Problem[];
} {
  const names = Object.keys(env);
  if (names.length > ENV_LIMITS.variables) {
    const problem = `must have at most ${ENV_LIMITS.variables} variables`;
    return { variables: [], problems: [{ path: "env", problem }] };
  }
  const problems = names.flatMap((name) => variableProblem(name, env[name]));
  const variables = problems.length > 0 ? [] : names.map((name) => `${name}=${env[name]}`);
  const bytes = variables.reduce((sum, variable) => sum + Buffer.byteLength(variable), 0);
  if (bytes > ENV_LIMITS.totalBytes) {
    const problem = `must have at most ${ENV_LIMITS.totalBytes} bytes, names and values together`;
    return { variables: [], problems: [{ path: "env", problem }] };
  }
  return { variables, problems };
}

function variableProblem(name: string, value: unknown): Problem[] {
  if (name.length > MAX_NAME_CHARS || !NAME.test(name)) {
    const shown = JSON.stringify(name.slice(0, MAX_SHOWN_CHARS).toWellFormed());
    const problem = `${shown} is not a name of a variable: letters, digits and _, no digit first, at most ${MAX_NAME_CHARS}`;
    return [{ path: "env", problem }];
  }
  const problem = RESERVED.some((prefix) => name.startsWith(prefix))
    ? "is reserved: names that begin with SVC_ or SANDBOX_ are the service's"
    : valueProblem(value);
  return problem === undefined ? [] : [{ path: `env.${name}`, problem }];
}

function valueProblem(value: unknown): string | undefined {
  if (typeof value !== "string") return "must be a string";
  if (value.includes("\0")) return "must not contain NUL";
  if (!value.isWellFormed()) return "must be valid Unicode";
  if (Buffer.byteLength(value) > ENV_LIMITS.valueBytes)
    return `must have at most ${ENV_LIMITS.valueBytes} bytes`;
  return undefined;
}
