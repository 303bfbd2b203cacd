/**
 * JSON as callers wrote it: every key is kept, `__proto__` too, since nothing here ever assigns a key of theirs. Numbers are
 * IEEE doubles, as for every JavaScript reader. Bodies are bounded in depth and values before they are parsed.
 */
import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import {
  canonicalArguments,
  exceededJsonBound,
  JSON_BOUNDS,
  ServiceError,
  TOOL_CALLS_BOUNDS,
} from "@svc/contracts";
import { type HttpServer, invalidRequest } from "@svc/service-kit";

/** Makes a server (or an encapsulated part of it) read JSON bodies that way. */
export function parsePlainJson(app: HttpServer): void {
  app.removeContentTypeParser("application/json");
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body: Buffer, done) => {
    try {
      if (!isUtf8(body)) throw new SyntaxError("not UTF-8");
      if (exceededJsonBound(body, TOOL_CALLS_BOUNDS) !== undefined) return done(tooLarge());
      done(null, JSON.parse(body.toString("utf8")));
    } catch {
      done(new ServiceError("invalid_json"));
    }
  });
}

const tooLarge = () =>
  new ServiceError(
    "invalid_request",
    `The JSON may have ${JSON_BOUNDS.depth} levels and ${JSON_BOUNDS.values} values.`,
  );

/** The JSON text of a parsed value. Refuses a value that is nested too deeply to be serialised, with the given path in the error. */
export function jsonText(value: unknown, path: string): string {
  try {
    return JSON.stringify(value);
  } catch {
    throw invalidRequest([{ path, problem: "is nested too deeply" }]);
  }
}

/** A digest that is the same for the same value, whatever the order of keys and the white space of its text. */
export function digestOf(value: unknown): string {
  return hash("sha256", canonicalArguments(value), "base64url");
}
