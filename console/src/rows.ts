/**
 * Reads the first rows of a file that a program wrote, with the first columns of each, as text. The page reads such files without
 * being asked. So work and memory grow no faster than the file, whatever it contains. Pure.
 */
const MAX_ROWS = 100;
const MAX_COLUMNS = 30;
const DELIMITERS = [",", ";", "\t", "|"];

/** Undefined if there are no rows. The first row has the names of the columns. */
export function rowsOf(name: string, text: string): string[][] | undefined {
  const isJson = name.toLowerCase().endsWith(".json");
  const rows = isJson ? rowsOfRecords(JSON.parse(text)) : rowsOfLines(text);
  return rows.length === 0 ? undefined : rows;
}

function rowsOfRecords(value: unknown): string[][] {
  if (!Array.isArray(value)) return [];
  const records = value.slice(0, MAX_ROWS).filter((row) => typeof row === "object" && row !== null);
  const columns = [...new Set(records.flatMap((row) => Object.keys(row)))].slice(0, MAX_COLUMNS);
  if (columns.length === 0) return [];
  return [columns, ...records.map((row) => columns.map((column) => cell(row[column])))];
}

const cell = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);

/** Fields as in RFC 4180, with the delimiter that is most frequent in the first line. Empty lines are left out. */
function rowsOfLines(text: string): string[][] {
  const [first = ""] = text.split(/[\r\n]/, 1);
  const count = (delimiter: string) => first.split(delimiter).length;
  const delimiter = DELIMITERS.reduce((best, one) => (count(one) > count(best) ? one : best));
  const plain = new RegExp(`[^${delimiter}\r\n]*`, "y");
  const rows: string[][] = [];
  for (let at = 0; at < text.length && rows.length <= MAX_ROWS; at += text.startsWith("\r\n", at) ? 2 : 1) {
    const row: string[] = [];
    for (let isMore = true; isMore; at += isMore ? 1 : 0) {
      const field = fieldAt(text, at, plain);
      if (row.length < MAX_COLUMNS) row.push(field.value);
      at = field.end;
      isMore = text[at] === delimiter;
    }
    if (row.length > 1 || row[0] !== "") rows.push(row);
  }
  return rows;
}

/** A quoted field, or the text up to the next delimiter or line end. Text after the closing quotes belongs to the field. */
function fieldAt(text: string, at: number, plain: RegExp): { value: string; end: number } {
  let value = "";
  let end = at;
  if (text[at] === '"') {
    end = closingQuote(text, at + 1);
    value = text.slice(at + 1, end).replaceAll('""', '"');
    end++;
  }
  plain.lastIndex = end;
  value += plain.exec(text)?.[0] ?? "";
  return { value, end: Math.max(end, plain.lastIndex) };
}

/** The end of the text if there is no closing quote. */
function closingQuote(text: string, from: number): number {
  for (let at = from; ; at += 2) {
    at = text.indexOf('"', at);
    if (at === -1) return text.length;
    if (text[at + 1] !== '"') return at;
  }
}
