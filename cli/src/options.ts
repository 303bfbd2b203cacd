/**
 * Options of a command line. They are declared as data, and commander parses them strictly and prints the help. An unknown
 * option is a Problem that names the nearest known one. `--name value`, `--name=value`, `-n value`; `--` ends the options.
 */
import { type CommanderError, Command as Parser, Option as ParserOption } from "commander";
import { Problem, USAGE_EXIT_CODE } from "./problem.ts";
import { suggestion } from "./suggestion.ts";

export interface Option {
  doc: string;
  short?: string;
  /** Name of the value in the help. Without it the option is a switch. */
  value?: string;
  /** The option may be given several times. */
  many?: boolean;
  /** Values that shell completion may offer. Other values are valid, too. */
  words?: readonly string[];
  /** The value may be empty, or be the name of an option. */
  anyText?: boolean;
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

export function parseOptions<const T extends Options>(argv: readonly string[], options: T): Parsed<T> {
  const { before, rest } = splitRest(argv);
  const parser = addOptions(strict(new Parser("./svc")), options).argument("[ARG...]");
  parser.parse(before, { from: "user" });
  return { values: valuesOf(parser, options), positionals: argumentsOf(parser), rest };
}

export function splitRest(argv: readonly string[]): { before: string[]; rest: string[] } {
  const end = argv.indexOf("--");
  return end === -1
    ? { before: [...argv], rest: [] }
    : { before: argv.slice(0, end), rest: argv.slice(end + 1) };
}

/** What commander does not store, but the completion of values needs. */
const DECLARED = new WeakMap<ParserOption, Option>();
const ARGUMENT_WORDS = new WeakMap<Parser, readonly string[]>();

export function declaredValue(option: ParserOption): Pick<Option, "value" | "words"> {
  return DECLARED.get(option) ?? {};
}

export function wordsOfArguments(parser: Parser): readonly string[] | undefined {
  return ARGUMENT_WORDS.get(parser);
}

/** `form`: the declaration in commander's form. `words`: values that shell completion may offer. */
export function addArguments(parser: Parser, form: string, words: readonly string[] | undefined): void {
  parser.argument(form);
  if (words !== undefined) ARGUMENT_WORDS.set(parser, words);
}

export function addOptions(parser: Parser, options: Options): Parser {
  for (const [name, declared] of Object.entries(options)) {
    const { short, value, many, doc } = declared;
    const flags = `${short ? `-${short}, ` : ""}--${name}${value ? ` <${value}>` : ""}`;
    const option = new ParserOption(flags, doc + (many ? " May be repeated." : ""));
    if (many) option.argParser((text, earlier: string[] = []) => [...earlier, text]);
    DECLARED.set(option, declared);
    parser.addOption(option);
  }
  return parser.helpOption("-h, --help", "Show this help.");
}

/**
 * Absent switches are false, absent values undefined, absent lists empty. Throws a Problem when a value is missing: it is
 * empty, as from an unset shell variable, or the next option stands in its place.
 */
export function valuesOf<T extends Options>(parser: Parser, options: T): Values<T> {
  const value = ([name, option]: [string, Option]) => {
    const key = new ParserOption(`--${name}`).attributeName();
    // A switch named --no-... is true when it is given, too.
    if (option.value === undefined) return [name, parser.getOptionValueSource(key) === "cli"];
    const given = parser.getOptionValue(key) as string | string[] | undefined;
    const isMissing = (text: string) =>
      text === "" || parser.options.some(({ short, long }) => text === short || text === long);
    if (!option.anyText && [given ?? []].flat().some(isMissing)) throw needsValue(name, option.value);
    return [name, given ?? (option.many ? [] : undefined)];
  };
  return Object.fromEntries(Object.entries(options).map(value)) as Values<T>;
}

/** The positional arguments. Refuses an empty one, so that an unset shell variable is not taken for a name. */
export function argumentsOf(parser: Parser): string[] {
  if (!parser.args.includes("")) return parser.args;
  throw usage("an argument is empty", `See: ${lineOf(parser)} --help`);
}

const needsValue = (name: string, value: string) => usage(`--${name} needs a value: --${name} ${value}`);

/** Makes a parser throw Problems, and print nothing except requested help. */
export function strict(parser: Parser): Parser {
  return parser
    .showSuggestionAfterError(false)
    .configureOutput({ outputError: () => undefined })
    .exitOverride((error) => {
      throw error.exitCode === 0 ? error : refused(error, parser);
    });
}

function refused(error: CommanderError, parser: Parser): Problem {
  if (error.code === "commander.excessArguments") {
    const unexpected = parser.args[parser.registeredArguments.length] ?? "";
    if (parser.commands.length > 0) return unknownCommand(unexpected, parser);
    return usage(`unexpected argument ${named(unexpected)}`, `See: ${lineOf(parser)} --help`);
  }
  const [first = "-"] = parser.args;
  if (error.code === "commander.unknownOption" && parser.commands.length > 0 && !first.startsWith("-"))
    return unknownCommand(first, parser);
  // "error: unknown option '--lagn'"
  const [, what = error.message] = /^error: (.*)$/s.exec(error.message) ?? [];
  const [, quoted = ""] = /'(.*)'/s.exec(what) ?? [];
  const option = parser.options.find(({ flags, long }) => flags === quoted || quoted.startsWith(`${long}=`));
  if (option?.required) return needsValue(option.name(), declaredValue(option).value ?? "");
  if (option !== undefined) return usage(`${option.long} takes no value`);
  if (error.code === "commander.unknownCommand") return unknownCommand(quoted, parser);
  const text = what.replace(`'${quoted}'`, () => quoted);
  const near = nearOption(quoted, parser);
  if (near !== undefined) return usage(`${text}; did you mean ${near}?`);
  return usage(text, `See: ${lineOf(parser)} --help`);
}

/** Names that other tools use for one of our commands. */
const OTHER_NAMES = new Map([
  ["start", "up"],
  ["serve", "up"],
  ["stop", "down"],
  ["run", "exec"],
  ["ps", "status"],
  ["check", "doctor"],
  ["settings", "config"],
  ["create", "add"],
  ["delete", "revoke"],
  ["version", "--version"],
]);

/** `parser`: the parser of ./svc, or of a command that has subcommands. */
export function unknownCommand(name: string, parser: Parser): Problem {
  const names = parser.commands.map((command) => command.name());
  const other = OTHER_NAMES.get(name) ?? "";
  const known = [...names, ...parser.options.map(({ long }) => long)];
  const near = known.includes(other) ? other : suggestion(name, names);
  const text = `unknown command ${named(name)}`;
  return near === undefined
    ? usage(text, `Commands: ${names.join(", ")}`)
    : usage(`${text}; did you mean ${near}?`);
}

const named = (text: string) => (text === "" ? '""' : text);

/** `./svc key add` */
function lineOf(parser: Parser): string {
  return parser.parent === null ? parser.name() : `${lineOf(parser.parent)} ${parser.name()}`;
}

function nearOption(typed: string, { options }: Parser): string | undefined {
  const [, name] = /^--([^=]+)/.exec(typed) ?? [];
  if (name === undefined) return undefined;
  const near = suggestion(name, [...options.map(({ long }) => long?.slice(2) ?? ""), "help"]);
  return near === undefined ? undefined : `--${near}`;
}

function usage(message: string, advice?: string): Problem {
  return new Problem(message, advice, USAGE_EXIT_CODE);
}

/** Parses the value of an option as a whole number within a range. */
export function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value) || value < min || value > max) {
    throw usage(`--${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`);
  }
  return value;
}
