/**
 * Completes the document that is generated from the routes' schemas: adds descriptions, headers, error codes and examples to every
 * operation. Answers may get further fields, so no schema of an answer forbids them.
 */
import { ADVICE, ERRORS, type ErrorCode } from "@svc/contracts";
import type { Example } from "./example-parts.ts";
import { EXAMPLES } from "./examples.ts";
import {
  ANSWER_HEADERS,
  type AnswerHeader,
  POLICY_HEADERS,
  REQUEST_HEADERS,
  SOMETIMES,
  WINDOW_HEADERS,
} from "./headers.ts";
import { OPERATIONS, type Operation, refusalsOf } from "./operations.ts";

interface Media {
  schema?: unknown;
  examples?: Record<string, unknown>;
}
interface Described {
  $ref?: string;
  description?: string;
}
interface Answer {
  description: string;
  headers?: Record<string, unknown>;
  content?: Record<string, Media>;
}
export interface DocumentedOperation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  security?: unknown[];
  parameters?: unknown[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, Answer>;
}
export interface Document {
  paths: Record<string, Record<string, DocumentedOperation>>;
  components: {
    schemas: Record<string, unknown>;
    headers?: Record<string, unknown>;
    parameters?: Record<string, unknown>;
    examples?: Record<string, unknown>;
  };
}

const JSON_TYPE = "application/json";
const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });

export function complete(document: Document): Document {
  const { components } = document;
  for (const operation of operationsOf(document)) completeOperation(operation, components.schemas);
  components.headers = Object.fromEntries(
    Object.entries(ANSWER_HEADERS).map(([name, header]) => [
      name,
      { ...header, required: !SOMETIMES.has(name as AnswerHeader) },
    ]),
  );
  components.parameters = Object.fromEntries(
    Object.entries(REQUEST_HEADERS).map(([name, header]) => [
      name,
      { name, in: "header", required: false, ...header },
    ]),
  );
  components.examples = Object.fromEntries(
    (Object.keys(ERRORS) as ErrorCode[]).map((code) => [code, refusalExample(code)]),
  );
  openAnswers(document);
  return document;
}

export const operationsOf = ({ paths }: Document): DocumentedOperation[] =>
  Object.values(paths).flatMap((methods) => Object.values(methods));

/** The description of an answer by its route, else by the schema of its body. */
function descriptionOf({ description, content }: Answer, schemas: Document["components"]["schemas"]): string {
  if (description !== "Default Response") return description;
  const { $ref, description: own } = Object(content?.[JSON_TYPE]?.schema) as Described;
  const referred = $ref === undefined ? undefined : (schemas[$ref.split("/").at(-1) ?? ""] as Described);
  const found = own ?? referred?.description;
  if (found === undefined) throw new Error(`an answer has no description: ${JSON.stringify(content)}`);
  return found;
}

function completeOperation(
  documented: DocumentedOperation,
  schemas: Document["components"]["schemas"],
): void {
  const { operationId: id, responses } = documented;
  const operation = OPERATIONS[id];
  if (operation === undefined) throw new Error(`openapi/operations.ts does not describe ${id}`);
  documented.description = operation.description;
  if (operation.access === "open") documented.security = [];
  documented.parameters = [...(documented.parameters ?? []), ...requestHeaders(operation)];
  for (const answer of Object.values(responses)) answer.description = descriptionOf(answer, schemas);
  for (const [status, codes] of Object.entries(refusalsOf(operation))) {
    responses[status] = refusal(responses[status], Number(status), codes, operation);
  }
  const { request, answers = {} } = EXAMPLES[id] ?? {};
  for (const media of Object.values(documented.requestBody?.content ?? {})) media.examples = { ...request };
  for (const [status, answer] of Object.entries(responses)) {
    answer.headers = answerHeaders(Number(status), operation);
    for (const [type, media] of Object.entries(answer.content ?? {})) {
      const whole: Readonly<Record<string, Example>> = answers[Number(status)]?.[type] ?? {};
      const examples = { ...whole, ...media.examples };
      if (Object.keys(examples).length > 0) media.examples = examples;
    }
  }
}

function requestHeaders({ access, reads = [] }: Operation): unknown[] {
  const names = ["X-Request-Id", ...(access === "open" ? [] : ["X-CodeAPI-Expected-Profile"]), ...reads];
  return names.map((name) => ref("parameters", name));
}

function answerHeaders(status: number, { access, sends }: Operation): Record<string, unknown> {
  const names: AnswerHeader[] = ["X-Request-Id", ...(sends?.[status] ?? [])];
  // A 401 and a 403 may come before the caller is known.
  if (access === "limited" && status !== 401 && status !== 403) {
    names.push(...(status < 500 ? WINDOW_HEADERS : POLICY_HEADERS));
  }
  if (status === 401) names.push("WWW-Authenticate");
  if (status === 429 || status === 503) names.push("Retry-After");
  return Object.fromEntries(names.map((name) => [name, ref("headers", name)]));
}

/** The answer with these error codes, combined with the answer that the route itself declares for the status. */
function refusal(
  own: Answer | undefined,
  status: number,
  codes: readonly ErrorCode[],
  { namesExecution }: Operation,
): Answer {
  const error = ref("schemas", namesExecution && status > 500 ? "BrokenExecution" : "Error");
  const schema = own?.content?.[JSON_TYPE]?.schema;
  return {
    description: codes.map((code) => `\`${code}\``).join(", "),
    content: {
      [JSON_TYPE]: {
        schema: schema === undefined ? error : { anyOf: [schema, error] },
        examples: Object.fromEntries(codes.map((code) => [code, ref("examples", code)])),
      },
    },
  };
}

const REPEATS = {
  no: "The same request fails again.",
  yes: "The same request may succeed later.",
  same: "The same request may be sent again at once.",
} as const;

function refusalExample(code: ErrorCode): Example & { description: string } {
  const { message } = ERRORS[code];
  const { fix, repeat } = ADVICE[code];
  const retry = code === "rate_limited" ? { retry_after_seconds: 12, retry_after: 12 } : {};
  return {
    summary: message,
    description: `${fix}. ${REPEATS[repeat]}`,
    value: { ...retry, error: code, message, request_id: "req-7f3a" },
  };
}

/** Schemas are written as closed objects, but the API does not promise that. */
function openAnswers(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  const object = value as Record<string, unknown>;
  if (object.additionalProperties === false) delete object.additionalProperties;
  for (const child of Object.values(object)) openAnswers(child);
}
