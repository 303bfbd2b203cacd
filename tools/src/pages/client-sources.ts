/**
 * Parts of the TypeScript client that are made from the service's own tables: types of requests and answers from the
 * OpenAPI document, and a class for each error code that a caller can read. Written by `npm run openapi`; a test fails when
 * they are stale.
 */
import { readFile } from "node:fs/promises";
import { ADVICE, ERRORS, type ErrorCode } from "@svc/contracts";
import { compile, type JSONSchema } from "json-schema-to-typescript";

const DOCUMENT = new URL("../../../docs/openapi.json", import.meta.url);
const REF = "#/components/schemas/";

/** The types that the client exports; the types that they refer to come with them. */
const SHOWN = [
  "ExecRequestInput",
  "ExecResponse",
  "ProgrammaticStartInput",
  "ProgrammaticResponse",
  "ToolCallRequired",
  "UploadResponse",
  "FileMetadata",
  "CreatedJob",
  "Job",
  "JobList",
  "Languages",
  "SessionList",
  "SessionFiles",
  "CancelResponse",
  "Error",
] as const;
/** Schemas whose name would hide a name of the language. */
const RENAMED: Readonly<Record<string, string>> = { Error: "ErrorBody" };

export async function clientTypes(): Promise<string> {
  const { components } = JSON.parse(await readFile(DOCUMENT, "utf8")) as {
    components: { schemas: Record<string, object> };
  };
  const $defs = Object.fromEntries(
    Object.entries(components.schemas).map(([name, schema]) => [RENAMED[name] ?? name, plain(schema)]),
  );
  const properties = Object.fromEntries(
    SHOWN.map((name) => [name, { $ref: `#/$defs/${RENAMED[name] ?? name}` }]),
  );
  const schema = { type: "object", properties, additionalProperties: false, $defs } as JSONSchema;
  const bannerComment =
    "/** Types of requests and answers, from the OpenAPI document of the service. Made by `npm run openapi`. */";
  const text = await compile(schema, "Schemas", { additionalProperties: false, bannerComment });
  return text.replace(/\nexport interface Schemas \{[\s\S]*?\n\}\n/, "\n");
}

/** Removes everything beside a reference: the generator would make a separate type of it. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const { $ref } = value as { $ref?: string };
  if ($ref !== undefined) {
    const name = $ref.slice(REF.length);
    return { $ref: `#/$defs/${RENAMED[name] ?? name}` };
  }
  const schema = Object.fromEntries(Object.entries(value).map(([key, child]) => [key, plain(child)]));
  return isAny(schema) ? { ...schema, tsType: "unknown" } : schema;
}

/** Whether a schema allows anything: the generator would make a type of objects of it. */
const isAny = (schema: Record<string, unknown>): boolean =>
  typeof schema.description === "string" &&
  !["type", "anyOf", "oneOf", "allOf", "enum", "const"].some((key) => key in schema);

const classOf = (code: string) =>
  `${code.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}${code.endsWith("error") ? "" : "Error"}`;

export function clientErrors(): string {
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ADVICE[code].who !== "component");
  const classes = codes.map(
    (code) => `/** ${ERRORS[code].message} */\nexport class ${classOf(code)} extends SvcError {}\n`,
  );
  const rows = codes.map(
    (code) =>
      `  ${code}: { type: ${classOf(code)}, status: ${ERRORS[code].status}, repeat: "${ADVICE[code].repeat}" },\n`,
  );
  return [
    "/** A class for each error code, its usual status, and whether its request may be repeated. Made by `npm run openapi`. */\n",
    'import { SvcError } from "./error.ts";\n\n',
    classes.join("\n"),
    "\nexport const CODES: Readonly<\n",
    '  Record<string, { type: typeof SvcError; status: number; repeat: "no" | "yes" | "same" }>\n',
    "> = {\n",
    ...rows,
    "};\n",
  ].join("");
}
