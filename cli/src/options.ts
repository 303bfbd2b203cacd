/**
 * Options of a command line: described as data, parsed strictly (an unknown option is refused with the nearest known
 * one), printed as help. Pure. `--name value`, `--name=value`, `-n value`; `--` ends the options.
 */
import { nearestName } from "@svc/service-kit/config/nearest";
import { Problem, USAGE_EXIT_CODE } from "./problem.ts";

export interface Option {
  doc: string;
  short?: string;
  /** Name of the value in the help. Without it the option is a switch. */
  value?: string;
  /** The option may be given several times. */
  many?: boolean;
}

export type Options = Readonly<Record<string, Option>>;

export type Values<T extends Options> = {
  [Name in keyof T]: T[Name] extends { value: string }
    ? T[Name] extends { many: true }
      ? string[]
      : string | undefined
    : boolean;
};

export interface Parsed<T extends Options> {
  values: Values<T>;
  positionals: string[];
  /** Everything after `--`. */
  rest: string[];
}

const HELP: Option = { doc: "Show this help.", short: "h" };

export function parseOptions<const T extends Options>(argv: readonly string[], options: T): Parsed<T> {
  const values: Record<string, string | string[] | boolean | undefined> = {};
  for (const [name, option] of Object.entries(options)) {
    values[name] = option.value === undefined ? false : option.many ? [] : undefined;
  }
  const positionals: string[] = [];
  let rest: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index] ?? "";
    if (argument === "--") {
      rest = argv.slice(index + 1);
      break;
    }
    if (!argument.startsWith("-") || argument === "-") {
      positionals.push(argument);
      continue;
    }
    const { name, option, inline } = find(argument, options);
    if (option.value === undefined) {
      if (inline !== undefined) throw usage(`--${name} takes no value`);
      values[name] = true;
      continue;
    }
    const value = inline ?? argv[++index];
    if (value === undefined) throw usage(`--${name} needs a value: --${name} ${option.value}`);
    if (option.many) (values[name] as string[]).push(value);
    else values[name] = value;
  }
  return { values: values as Values<T>, positionals, rest };
}

/** True when help is asked for before `--`. */
export function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv
    .slice(0, end === -1 ? undefined : end)
    .some((argument) => argument === "--help" || argument === "-h");
}

function find(argument: string, options: Options): { name: string; option: Option; inline?: string } {
  const equals = argument.indexOf("=");
  const flag = equals === -1 ? argument : argument.slice(0, equals);
  const inline = equals === -1 ? {} : { inline: argument.slice(equals + 1) };
  for (const [name, option] of Object.entries(options)) {
    if (flag === `--${name}` || (option.short !== undefined && flag === `-${option.short}`)) {
      return { name, option, ...inline };
    }
  }
  const known = [...Object.keys(options), "help"].map((name) => `--${name}`);
  throw usage(`unknown option ${flag}; did you mean ${nearestName(flag, known)}?`);
}

function usage(message: string): Problem {
  return new Problem(message, undefined, USAGE_EXIT_CODE);
}

/** A whole number of an option, within its range. */
export function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value) || value < min || value > max) {
    throw usage(`--${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`);
  }
  return value;
}

/** One line per option, aligned. */
export function optionHelp(options: Options): string {
  const rows = Object.entries({ ...options, help: HELP }).map(([name, option]) => {
    const flag = `${option.short ? `-${option.short}, ` : "    "}--${name}${option.value ? ` ${option.value}` : ""}`;
    return [flag, option.doc + (option.many ? " May be repeated." : "")] as const;
  });
  const width = Math.max(...rows.map(([flag]) => flag.length));
  return rows.map(([flag, doc]) => `  ${flag.padEnd(width)}  ${doc}`).join("\n");
}
