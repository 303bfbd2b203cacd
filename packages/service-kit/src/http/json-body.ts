/**
 * Reads JSON bodies. Bounds bytes, time, depth and number of values while the body arrives, and parses only the complete body.
 * Refuses invalid UTF-8, which would otherwise silently become different text. Keys such as `__proto__` are ordinary fields, as
 * JSON.parse makes them: schemas ignore unknown ones, and values that may hold any JSON keep them.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { type JsonBounds, JsonScanner, jsonErrorIndex, ServiceError } from "@svc/contracts";
import { BodyReader, bodyTooLarge } from "./body-reader.ts";
import type { FastifyRequest, HttpServer } from "./types.ts";

export interface JsonBodyRules {
  timeoutMs: number;
  /** Undefined when only the size in bytes is bounded. */
  bounds?: Readonly<JsonBounds> | undefined;
}

const sizes = new WeakMap<FastifyRequest, number>();

/** Size of a request's JSON body, in bytes. */
export function bodyBytes(request: FastifyRequest): number {
  return sizes.get(request) ?? 0;
}

export function readJsonBodies(app: HttpServer, rules: JsonBodyRules): void {
  app.addContentTypeParser("application/json", async (request: FastifyRequest, payload: IncomingMessage) => {
    // A request without a route needs no body.
    if (request.is404) return undefined;
    return parseJson(await readBody(request, payload, rules));
  });
}

async function readBody(
  request: FastifyRequest,
  payload: IncomingMessage,
  { timeoutMs, bounds }: JsonBodyRules,
): Promise<Buffer> {
  const maxBytes = request.routeOptions.bodyLimit;
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw bodyTooLarge(maxBytes);
  const scanner = bounds && new JsonScanner(bounds);
  const reader = new BodyReader(payload, { maxBytes, timeoutMs, late });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for (let chunk = await reader.next(); chunk !== undefined; chunk = await reader.next()) {
    const exceeded = scanner?.push(chunk);
    if (bounds && exceeded !== undefined) throw new ServiceError("invalid_json", tooLarge(exceeded, bounds));
    chunks.push(chunk);
    bytes += chunk.length;
  }
  sizes.set(request, bytes);
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, bytes);
}

function tooLarge(exceeded: keyof JsonBounds, { depth, values }: Readonly<JsonBounds>): string {
  return exceeded === "depth"
    ? `The request body is nested deeper than ${depth} levels.`
    : `The request body holds more than ${values.toLocaleString("en")} values.`;
}

function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw new ServiceError("invalid_json", "The request body is not valid UTF-8.");
  const text = body.toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError("invalid_json", brokenText(text));
  }
}

/** Characters are counted from 1, as editors do. */
function brokenText(text: string): string {
  if (text === "") return "The request body is empty; send a JSON object.";
  const at = jsonErrorIndex(text);
  const what = at < text.length ? String.fromCodePoint(text.codePointAt(at) ?? 0) : undefined;
  const unexpected = what === undefined ? "unexpected end" : `unexpected ${JSON.stringify(what)}`;
  return `The request body is not valid JSON: ${unexpected} at character ${at + 1}.`;
}

function late(): ServiceError {
  return new ServiceError("invalid_request", "The request body did not arrive in time.", { status: 408 });
}
