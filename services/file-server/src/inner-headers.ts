/**
 * Parses the headers of internal calls. The callers are our own components, but the names and types that they pass on are not their own and are
 * untrusted.
 */
import type { IncomingHttpHeaders } from "node:http";
import {
  ACCOUNT_HEADER,
  fileNameProblem,
  isId,
  NAMESPACE_HEADER,
  type NameLimits,
  ORIGINAL_FILENAME_HEADER,
  READ_ONLY_HEADER,
  ServiceError,
} from "@svc/contracts";
import type { ObjectAddress, ObjectAttributes, PendingAttributes } from "@svc/object-store";

const CONTENT_TYPE = /^[\x21-\x7e][\x20-\x7e]{0,254}$/;
const NAMESPACE = /^[\x21-\x7e]{1,8192}$/;

export function addressOf(params: unknown): ObjectAddress {
  const { sid, fid } = params as { sid: string; fid: string };
  if (!isId(sid) || !isId(fid)) throw new ServiceError("invalid_id");
  return { session: sid, file: fid };
}

export function sessionOf(params: unknown): string {
  const { sid } = params as { sid: string };
  if (!isId(sid)) throw new ServiceError("invalid_id");
  return sid;
}

/** The namespace that the caller speaks for; undefined when it names none. */
export function namespaceIn(headers: IncomingHttpHeaders): string | undefined {
  const given = headers[NAMESPACE_HEADER];
  return given === undefined ? undefined : checkNamespace(String(given));
}

/** The account whose quota a pending object counts in; undefined when the caller names none. */
export function accountIn(headers: IncomingHttpHeaders): string | undefined {
  const given = headers[ACCOUNT_HEADER];
  return given === undefined ? undefined : checkNamespace(String(given));
}

export function checkNamespace(text: string): string {
  if (!NAMESPACE.test(text) || text.split(":").length < 3 || !isPercentEncoded(text)) {
    throw new ServiceError("invalid_request", "The namespace is not valid.");
  }
  return text;
}

export function attributesIn(headers: IncomingHttpHeaders, limits: NameLimits): ObjectAttributes {
  const pending = pendingAttributesIn(headers, limits);
  const namespace = namespaceIn(headers);
  if (namespace === undefined) throw missing("X-SVC-Namespace");
  return { ...pending, namespace, readOnly: String(headers[READ_ONLY_HEADER]).toLowerCase() === "true" };
}

export function pendingAttributesIn(headers: IncomingHttpHeaders, limits: NameLimits): PendingAttributes {
  const contentType = headers["content-type"];
  if (contentType === undefined) throw missing("Content-Type");
  if (!CONTENT_TYPE.test(contentType)) {
    throw new ServiceError("invalid_request", "The Content-Type is not valid.");
  }
  const encoded = headers[ORIGINAL_FILENAME_HEADER];
  if (typeof encoded !== "string") throw missing("X-Original-Filename");
  if (!isPercentEncoded(encoded)) {
    throw new ServiceError("invalid_file_name", "X-Original-Filename must be percent-encoded UTF-8.");
  }
  const filename = decodeURIComponent(encoded);
  const problem = fileNameProblem(filename, limits);
  if (problem !== undefined) throw new ServiceError("invalid_file_name", `The file name ${problem}.`);
  return { filename, contentType };
}

function isPercentEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function missing(name: string): ServiceError {
  return new ServiceError("missing_headers", `The header ${name} is required.`);
}
