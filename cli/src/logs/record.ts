/** Parses one log line of any writer, and formats it for a person. Pure. */
import { type Colour, printable } from "../terminal.ts";

export interface LogRecord {
  component: string;
  /** As it stands in the file. */
  line: string;
  /** ms since 1970. A line without a time has the time of the line before it. */
  time: number;
  /** The fields of a JSON line; undefined for plain text, such as Redis writes. */
  fields: Readonly<Record<string, unknown>> | undefined;
}

/** `before`: the time of the line before. */
export function recordOf(component: string, line: string, before: number): LogRecord {
  const fields = fieldsOf(line);
  const time = fields === undefined ? timeOfText(line) : timeOf(fields.time);
  return { component, line, time: time ?? before, fields };
}

function fieldsOf(line: string): LogRecord["fields"] {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function timeOf(value: unknown): number | undefined {
  const time = typeof value === "string" ? Date.parse(value) : Number(value);
  return Number.isFinite(time) ? time : undefined;
}

/** Redis: `1234:M 31 Jan 2026 10:00:00.000 * Ready`, in local time. */
const REDIS_LINE = /^\d{1,10}:[A-Z] (\d{1,2} [A-Z][a-z]{2} \d{4} [\d:.]{8,12}) /;

function timeOfText(line: string): number | undefined {
  const [, text] = REDIS_LINE.exec(line) ?? [];
  return text === undefined ? undefined : timeOf(text);
}

/** Formats any record as a JSON line. */
export function jsonOf({ component, line, time, fields }: LogRecord): string {
  if (fields !== undefined) return line;
  return JSON.stringify({ time: isoTime(time), name: component, msg: line });
}

const LEVELS: Readonly<Record<string, readonly [name: string, colour: Colour]>> = {
  10: ["trace", "dim"],
  20: ["debug", "dim"],
  30: ["info", "green"],
  40: ["warn", "yellow"],
  50: ["error", "red"],
  60: ["fatal", "red"],
};

/** Length of the longest component name. */
const NAME_CHARS = 16;
const LEVEL_CHARS = 5;

/** One line, or several for a record with a stack trace. Nothing in the text can move the cursor of a terminal. */
export function textOf(
  { component, line, time, fields }: LogRecord,
  colour: (colour: Colour, text: string) => string,
): string {
  const head = `${colour("dim", isoTime(time))} ${colour("cyan", component.padEnd(NAME_CHARS))}`;
  if (fields === undefined) return `${head} ${"".padEnd(LEVEL_CHARS)} ${oneLine(line)}`;
  const { level, time: _t, name: _n, instance: _i, msg, stack, ...rest } = fields;
  const [word, shade] = LEVELS[String(level)] ?? [String(level ?? ""), "dim"];
  const { shown, frames } = withoutStacks({ ...rest, ...(stack === undefined ? {} : { stack }) });
  const pairs = Object.entries(shown).map(
    ([key, value]) => `${colour("dim", `${oneLine(key)}=`)}${fieldText(value)}`,
  );
  const text = [head, colour(shade, word.padEnd(LEVEL_CHARS)), oneLine(String(msg ?? "")), ...pairs].join(
    " ",
  );
  return [text.trimEnd(), ...frames.map((frame) => `    ${oneLine(frame)}`)].join("\n");
}

/** Separates stack traces from the fields, because they are shown below the line. */
function withoutStacks(fields: Record<string, unknown>) {
  const shown: Record<string, unknown> = {};
  const frames: string[] = [];
  for (const [key, value] of Object.entries(fields)) {
    const { stack, ...rest } = Object(key === "stack" ? { stack: value } : value) as { stack?: unknown };
    if (typeof stack !== "string" || Array.isArray(value)) shown[key] = value;
    else {
      frames.push(
        ...stack
          .split("\n")
          .map((frame) => frame.trim())
          .filter(Boolean),
      );
      if (key !== "stack") shown[key] = rest;
    }
  }
  return { shown, frames };
}

function fieldText(value: unknown): string {
  if (typeof value === "string" && /^[\w./:@+-]+$/.test(value)) return value;
  return oneLine(JSON.stringify(value) ?? "");
}

const oneLine = (text: string) => printable(text.replaceAll("\n", "\\n"));

function isoTime(time: number): string {
  return time > 0 && time < 8.64e15 ? new Date(time).toISOString() : "-".padEnd(24);
}
