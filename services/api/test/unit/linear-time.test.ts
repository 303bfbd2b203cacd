/**
 * Every parser of callers' text takes time linear in the text: four times the text takes at most six times as long. Each row
 * is a text that a careless pattern or loop would read again and again. Time is processor time, so that other work on
 * the machine does not count.
 */
import {
  canonicalArguments,
  exceededJsonBound,
  fileNameProblem,
  findPathConflict,
  findToolCollision,
  toolIdentifier,
} from "@svc/contracts";
import { answerFor } from "@svc/file-server/conditions";
import { attachment } from "@svc/file-server/content-disposition";
import { pendingAttributesIn } from "@svc/file-server/inner-headers";
import { parseRange } from "@svc/file-server/ranges";
import Fastify from "fastify";
import { describe, expect, test } from "vitest";
import { bearerToken } from "../../src/auth/bearer.ts";
import { idempotencyKey } from "../../src/exec/idempotency.ts";
import { parseFiles } from "../../src/exec/refs.ts";
import { chooseRuntime } from "../../src/exec/request.ts";
import { boundaryOf, parsePartHeaders } from "../../src/files/multipart/part-headers.ts";
import { MultipartReader } from "../../src/files/multipart/reader.ts";
import { ownerOf } from "../../src/files/owner.ts";

/** Long enough for anything quadratic to take seconds. */
const CHARS = 25_000;
const TIMES = 5;
/** Shorter times are noise of the clock and of the collector. */
const FLOOR_MS = 20;

const part = (head: string) => parsePartHeaders(Buffer.from(head));
const disposition = (text: string) => part(`Content-Disposition: ${text}`);
const names = { maxLength: 1_000_000, maxDepth: 1_000_000 };
const record = { etag: "e", lastModified: "2026-01-31T10:00:00.000Z", size: 10 };
const conditions = (headers: Record<string, string>) => answerFor("GET", headers, record);

/** One request whose text is somewhere in its head, read as a route would. */
const app = Fastify({
  trustProxy: (_address, hop) => hop < 10,
  http: { maxHeaderSize: 2 ** 20 },
  routerOptions: { maxParamLength: 2 ** 20 },
});
app.get("/*", async (request) => [
  request.query,
  request.ips,
  request.host,
  request.protocol,
  request.params,
]);
const head = (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });

async function form(text: string, chunk: number): Promise<void> {
  const bytes = Buffer.from(text);
  let at = 0;
  const next = async () => {
    at += chunk;
    return at - chunk < bytes.length ? bytes.subarray(at - chunk, at) : undefined;
  };
  const reader = new MultipartReader({ next }, "b");
  while ((await reader.nextPart()) !== undefined);
}
const field = (head: string) => `--b\r\nContent-Disposition: form-data; name="f"\r\n${head}\r\nv\r\n`;

type Row = [name: string, of: (n: number) => string, parse: (text: string) => unknown];
const around = (before: string, unit: string, after: string) => (n: number) =>
  before + unit.repeat(n / unit.length) + after;

const ROWS: Row[] = [
  ["a value with blanks in it", around("X-A: b", " ", "c\r\nContent-Disposition: form-data"), part],
  ["blanks before a value", around("X-A:", " ", "c\r\nContent-Disposition: form-data"), part],
  ["tabs behind a value", around("X-A: b", "\t", "\r\nContent-Disposition: form-data"), part],
  ["a long header name", around("", "a", "\0: x"), part],
  ["folded lines", around("Content-Disposition: form-data", "\r\n ", "x"), part],
  ["many lines", around("", "a: b\r\n", ""), part],
  ["blanks in a content type", around("Content-Type: a", " ", "b\r\nContent-Disposition: form-data"), part],
  ["blanks before form-data", around("", " ", "form-data"), disposition],
  ["blanks behind form-data", around("form-data", " ", "x"), disposition],
  ["blanks before a parameter", around("form-data;", " ", "x"), disposition],
  ["blanks behind a parameter's name", around("form-data; name", " ", "x"), disposition],
  ["blanks before a parameter's value", around("form-data; name=", " ", '"'), disposition],
  ["blanks behind a parameter's value", around("form-data; name=a", " ", "x"), disposition],
  ["blanks in a plain file name", around("form-data; filename=a", " ", 'b"'), disposition],
  ["blanks in a quoted file name", around('form-data; filename="a', " ", 'b" x'), disposition],
  ["backslashes in a file name", around('form-data; filename="', "\\", "x"), disposition],
  ["quotes", around("form-data; ", '"', ""), disposition],
  ["semicolons", around("form-data", ";", ""), disposition],
  ["equals signs", around("form-data; a", "=", '"'), disposition],
  ["escapes in a file name", around('form-data; filename="', "%22", '"'), disposition],
  ["an encoded file name", around("form-data; filename*=utf-8'", "'", ""), disposition],
  ["a percent-encoded file name", around("form-data; filename*=utf-8''", "%c3%a4", ""), disposition],
  [
    "many parameters",
    (n) => `form-data${Array.from({ length: n / 8 }, (_, at) => `; p${at}=x`).join("")}`,
    disposition,
  ],
  ["a form content type", around("multipart/form-data", " ", "x"), boundaryOf],
  ["parameters of a content type", around("multipart/form-data", "; a =b", ""), boundaryOf],
  ["fields of a form", (n) => `${field("").repeat(n / 50)}--b--`, (text) => form(text, 4096)],
  ["a body of line breaks", around(field(""), "\r", "\r\n--b--"), (text) => form(text, 4096)],
  ["a body of almost-delimiters", around(field(""), "\r\n--", "\r\n--b--"), (text) => form(text, 512)],
  ["a body in small pieces", around(field(""), "a", "\r\n--b--"), (text) => form(text, 3)],
  ["a version of an owner", around("1", "0", "x"), (version) => ownerOf({ kind: "skill", id: "a", version })],
  ["an id of an owner", around("", "a", "!"), (id) => attempt(() => ownerOf({ kind: "agent", id }))],
  ["a deep file name", around("", "a/", "a"), (name) => fileNameProblem(name, names)],
  ["a file name of dots", around("", "../", ""), (name) => fileNameProblem(name, names)],
  ["many paths", (n) => "a".repeat(n), (text) => findPathConflict([...text].map((_, at) => `d/${at}`))],
  [
    "a file reference",
    around("", "a/", "a"),
    (name) => attempt(() => parseFiles([{ id: "x", name }], { maxFiles: 1, keepsSessions: false, names })),
  ],
  [
    "tool names",
    (n) => "a".repeat(n),
    (text) =>
      findToolCollision(
        [...text].map((_, at) => `t${at}`),
        "bash",
      ),
  ],
  ["a tool name", around("", " -", "!"), (name) => toolIdentifier(name, "python")],
  ["a language", around("", "py", ""), (lang) => attempt(() => chooseRuntime({ lang }, []))],
  ["a bearer token", around("Bearer", " ", "x"), (text) => attempt(() => bearerToken([text]))],
  ["a token of dots", around("Bearer ", "a.", ""), (text) => attempt(() => bearerToken([text]))],
  [
    "an idempotency key",
    around("", " ", "é"),
    (key) => attempt(() => idempotencyKey({ "idempotency-key": key })),
  ],
  ["a range", around("bytes=", " ", "0-1"), (text) => parseRange(text, 10)],
  ["digits of a range", around("bytes=", "1", "-x"), (text) => parseRange(text, 10)],
  ["many ranges", around("bytes=0-1", ",0-1", ""), (text) => parseRange(text, 10)],
  ["if-none-match", around("", '"a",', '"'), (text) => conditions({ "if-none-match": text })],
  ["if-none-match of quotes", around("", '"', ""), (text) => conditions({ "if-none-match": text })],
  ["if-none-match of blanks", around("*", " ", "x"), (text) => conditions({ "if-none-match": text })],
  ["if-modified-since", around("", "1 ", "x"), (text) => conditions({ "if-modified-since": text })],
  ["if-modified-since of brackets", around("", "(", ""), (text) => conditions({ "if-modified-since": text })],
  ["if-range", around("", " ", "x"), (text) => conditions({ "if-range": text, range: "bytes=0-1" })],
  ["a content-disposition", around("", "é'", ""), attachment],
  [
    "a stored name",
    around("", "%41", ""),
    (name) => pendingAttributesIn({ "content-type": "a/b", "x-original-filename": name }, names),
  ],
  [
    "a body of many keys",
    (n) =>
      JSON.stringify(Object.fromEntries(Array.from({ length: n / 8 }, (_, at) => [`k${at * 7919}`, at]))),
    (text) => canonicalArguments(JSON.parse(text), 1000),
  ],
  ["a JSON text of brackets", around("", "[{", ""), (text) => shape(text)],
  ["a JSON text of backslashes", around('["', "\\", ""), (text) => shape(text)],
  [
    "a query of names",
    (n) => Array.from({ length: n / 6 }, (_, at) => `k${at}=`).join("&"),
    (text) => head(`/?${text}`),
  ],
  ["a query of one name", around("", "kind=&", ""), (text) => head(`/?${text}`)],
  ["a query of escapes", around("a=", "%2", ""), (text) => head(`/?${text}`)],
  ["a query of marks", around("", "&", ""), (text) => head(`/?${text}`)],
  ["a path of slashes", around("", "/", ""), (text) => head(text)],
  ["a path of escapes", around("/", "%2f", ""), (text) => head(text)],
  [
    "forwarded addresses",
    around("1.1.1.1", ", 1.1.1.1", ""),
    (text) => head("/", { "x-forwarded-for": text }),
  ],
  [
    "blanks in forwarded addresses",
    around("1.1.1.1", " ", ","),
    (text) => head("/", { "x-forwarded-for": text }),
  ],
  ["a forwarded host", around("a", " ,", "b"), (text) => head("/", { "x-forwarded-host": text })],
  ["a forwarded protocol", around("http", " ,", ""), (text) => head("/", { "x-forwarded-proto": text })],
  ["a host", around("a", " ", "b"), (text) => head("/", { host: text })],
  ["a content type", around("a/b", " ;", ""), (text) => head("/", { "content-type": text })],
  ["accept", around("text/html", ", */*", ""), (text) => head("/", { accept: text })],
  ["cookies", around("a=b", "; ", ""), (text) => head("/", { cookie: text })],
];

function attempt(work: () => unknown): void {
  try {
    work();
  } catch {
    // A refusal is an answer.
  }
}

function shape(text: string): void {
  exceededJsonBound(Buffer.from(text), { depth: 1e9, values: 1e9 });
}

async function cpuMs(parse: Row[2], text: string): Promise<number> {
  const start = process.cpuUsage();
  try {
    await parse(text);
  } catch {
    // A refusal is an answer.
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

describe("the time of a parser is linear in", () => {
  test.each(ROWS)("%s", async (_name, of, parse) => {
    const [short, long] = [of(CHARS), of(4 * CHARS)];
    // What the compiler and the collector do beside a parser can only add time: the least is the parser's own.
    let [once, fourTimes] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let run = 0; run < TIMES; run++) {
      once = Math.min(once, await cpuMs(parse, short));
      fourTimes = Math.min(fourTimes, await cpuMs(parse, long));
    }
    expect(fourTimes).toBeLessThanOrEqual(6 * Math.max(once, FLOOR_MS));
  });
});
