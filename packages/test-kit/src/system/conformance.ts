/**
 * Holds answers of the public API against the committed OpenAPI document: the status and the error code must be named there
 * for the operation, headers that are always sent must be there, and the body must fit its schema without any further field.
 */
import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

interface Media {
  examples?: Record<string, unknown>;
}
interface DocumentedAnswer {
  headers?: Record<string, { $ref: string }>;
  content?: Record<string, Media>;
}
interface Operation {
  operationId: string;
  responses: Record<string, DocumentedAnswer>;
}
interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { headers: Record<string, { required: boolean }> };
}

/** An answer as it came. */
export interface Came {
  status: number;
  headers: Headers;
  text: string;
}

/** Found below the same address, and no operations. */
const UNDOCUMENTED: ReadonlySet<string> = new Set(["/", "/docs", "/console", "/metrics", "/v1/metrics"]);
/** Answers to what is no request of any operation. */
const NO_OPERATION = new Set(["not_found", "method_not_allowed", "origin_not_allowed"]);
const HEADERS_TOO_LARGE = 431;

const committed = JSON.parse(
  readFileSync(new URL("../../../../docs/openapi.json", import.meta.url), "utf8"),
) as Document;

const routes = Object.entries(committed.paths).map(([path, methods]) => ({
  path,
  pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  methods,
}));

/** What is wrong with an answer to a request; empty: nothing. `path`: with /v1, without a query. */
export function problemsOfAnswer(method: string, path: string, came: Came): string[] {
  if (UNDOCUMENTED.has(path) || came.status === HEADERS_TOO_LARGE) return [];
  const route = routes.find(({ pattern }) => pattern.test(path));
  const name = method === "HEAD" ? "get" : method.toLowerCase();
  const operation = route?.methods[name];
  if (route === undefined || operation === undefined) return problemsOutside(came);
  const answer = operation.responses[came.status];
  if (answer === undefined) return [`${operation.operationId} does not name the status ${came.status}`];
  const problems = missingHeaders(answer, came.headers);
  if (method === "HEAD" || answer.content === undefined) return problems;
  const at = ["paths", route.path, name, "responses", String(came.status), "content"];
  return [...problems, ...problemsOfBody(answer.content, at, came)];
}

/** Throws when an answer is not what the document says. */
export function expectDocumented(method: string, path: string, came: Came): void {
  const problems = problemsOfAnswer(method, path, came);
  if (problems.length === 0) return;
  throw new Error(
    `${method} ${path} was answered ${came.status} against docs/openapi.json: ${problems.join("; ")}\n${came.text.slice(0, 2000)}`,
  );
}

function problemsOutside({ status, text }: Came): string[] {
  const { error } = parsed(text) as { error?: unknown };
  return NO_OPERATION.has(String(error)) ? [] : [`no operation answers ${status} ${String(error)}`];
}

function missingHeaders({ headers = {} }: DocumentedAnswer, came: Headers): string[] {
  return Object.keys(headers)
    .filter((name) => committed.components.headers[name]?.required && !came.has(name))
    .map((name) => `the header ${name} is missing`);
}

function problemsOfBody(
  content: Record<string, Media>,
  at: readonly string[],
  { status, headers, text }: Came,
): string[] {
  if (content["application/octet-stream"] !== undefined) return [];
  const type = (headers.get("content-type") ?? "").split(";", 1)[0] ?? "";
  const media = content[type];
  if (media === undefined) return [`the media type ${type} is not named`];
  const body = type === "application/json" ? parsed(text) : text;
  const { error, request_id } = Object(body) as { error?: unknown; request_id?: unknown };
  const isUnnamed = status >= 400 && typeof error === "string" && media.examples?.[error] === undefined;
  const problems = schemaProblems(committed, [...at, type, "schema"], body);
  if (isUnnamed) problems.push(`the code ${error} is not named`);
  if (request_id !== undefined && request_id !== headers.get("x-request-id")) {
    problems.push("request_id is not X-Request-Id");
  }
  return problems;
}

const MAX_SHOWN = 8;

/** What keeps a value from fitting the schema at a place of a document. A field that the schema does not name counts. */
export function schemaProblems(document: object, at: readonly string[], value: unknown): string[] {
  const validate = validatorOf(document, `#/${at.map(escaped).join("/")}`);
  if (validate(value)) return [];
  return (validate.errors ?? [])
    .slice(0, MAX_SHOWN)
    .map(
      ({ instancePath, message, params }) =>
        `${instancePath || "the body"} ${message} ${JSON.stringify(params)}`,
    );
}

interface Compiled {
  ajv: Ajv2020;
  validators: Map<string, ValidateFunction>;
}
const compiled = new WeakMap<object, Compiled>();

function validatorOf(document: object, address: string): ValidateFunction {
  const { ajv, validators } = compiled.get(document) ?? compiledFor(document);
  const known = validators.get(address);
  if (known !== undefined) return known;
  const made = ajv.compile({ $ref: `api${address}` });
  validators.set(address, made);
  return made;
}

function compiledFor(document: object): Compiled {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ $id: "api", ...closed(document) });
  const made = { ajv, validators: new Map<string, ValidateFunction>() };
  compiled.set(document, made);
  return made;
}

/** As a part of a JSON pointer in a URL. */
const escaped = (part: string) =>
  encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")).replaceAll("%7E", "~");

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** The same schemas, which take no further field: the document promises none, and tests want to see them. */
function closed<T>(value: T): T {
  if (Array.isArray(value)) return value.map(closed) as T;
  if (typeof value !== "object" || value === null) return value;
  const object = Object.fromEntries(Object.entries(value).map(([key, child]) => [key, closed(child)]));
  const isOpen = object.properties !== undefined && object.additionalProperties === undefined;
  return (isOpen && object.type === "object" ? { ...object, additionalProperties: false } : object) as T;
}
