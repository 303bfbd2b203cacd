/** One text for values that differ in the order of their keys only. Pure. */
import { ServiceError } from "@svc/contracts";

/** JSON with the keys of all objects in the order of their UTF-16 code units. */
export function canonicalJson(value: unknown): string {
  try {
    return textOf(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ServiceError("invalid_json", "The request body is nested too deeply.");
  }
}

function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  let text = "";
  if (Array.isArray(value)) {
    for (const item of value) text += `${text === "" ? "" : ","}${textOf(item)}`;
    return `[${text}]`;
  }
  for (const key of Object.keys(value).sort()) {
    const item = textOf((value as Record<string, unknown>)[key]);
    text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${item}`;
  }
  return `{${text}}`;
}
