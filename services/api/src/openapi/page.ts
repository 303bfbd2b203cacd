/** Renders the OpenAPI document as one HTML page, without scripts and without resources from another address. Pure. */
import { createHash } from "node:crypto";
import type { Document, DocumentedOperation } from "./complete.ts";
import { type Html, html, inline, prose } from "./html.ts";

interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  items?: Schema;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema;
  description?: string;
  example?: unknown;
}
interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
}
interface Example {
  summary: string;
  description?: string;
  value: unknown;
}
export interface ShownDocument extends Document {
  info: { title: string; description: string };
  tags: { name: string; description: string }[];
}

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:62rem;margin:0 auto;padding:1rem}
code,pre{font:.875rem/1.4 ui-monospace,monospace}
pre{overflow-x:auto;padding:.6rem;border:1px solid #8886;border-radius:4px}
table{border-collapse:collapse;width:100%;margin:.5rem 0 1rem}
th,td{text-align:left;vertical-align:top;padding:.25rem .5rem;border-bottom:1px solid #8884}
section{border-top:2px solid #8886;margin-top:2rem}
nav li{list-style:none}
.method{display:inline-block;min-width:4.5rem;font-weight:600}`;

/** The page may load, run, frame or send nothing. The style above is allowed by its hash. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

interface Shown extends DocumentedOperation {
  method: string;
  path: string;
}

export function pageOf(document: ShownDocument, version: string): string {
  const { info, tags, paths, components } = document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Shown => ({ ...operation, path, method })),
  );
  const ofTag = (tag: string) => operations.filter((operation) => operation.tags[0] === tag);
  const shown = tags.filter(({ name }) => ofTag(name).length > 0);
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${info.title} ${version}: interface</title>
<style>${STYLE_PIECE}</style>
</head>
<body>
<h1>${info.title} ${version}</h1>
${prose(info.description)}
<p>For programs: <a href="/v1/openapi.json">/v1/openapi.json</a>, with the credential of any other request.</p>
<nav>${shown.map(
    ({ name, description }) =>
      html`<h3>${description}</h3><ul>${ofTag(name).map(
        ({ operationId, method, path, summary }) =>
          html`<li><a href="#${operationId}"><span class="method">${method.toUpperCase()}</span> ${path}</a> ${summary}</li>`,
      )}</ul>`,
  )}</nav>
${shown.map(({ name }) => ofTag(name).map((operation) => operationSection(operation, document)))}
<section><h2>Objects</h2>${Object.entries(components.schemas).map(([name, schema]) =>
    schemaSection(name, schema as Schema),
  )}</section>
</body>
</html>
`;
  return page.text;
}

/** The style is not escaped, because it must match its hash. */
const STYLE_PIECE = html([STYLE] as unknown as TemplateStringsArray);

function operationSection(operation: Shown, document: ShownDocument): Html {
  const { operationId, method, path, summary, description = "", parameters = [], requestBody } = operation;
  return html`<section id="${operationId}">
<h2>${method.toUpperCase()} ${path}</h2>
<p><strong>${summary}</strong></p>
${prose(description)}
${parameterTable(parameters.map((parameter) => resolved<Parameter>(parameter, document)))}
${Object.entries(requestBody?.content ?? {}).map(
  ([type, { schema, examples = {} }]) =>
    html`<h3>Request: ${type}, ${typeOf(schema as Schema)}</h3>${exampleList(Object.values(examples) as Example[])}`,
)}
${Object.entries(operation.responses).map(([status, { description: what, headers = {}, content = {} }]) => {
  const [, media] = Object.entries(content)[0] ?? [];
  const examples = Object.values(media?.examples ?? {}).map((example) =>
    resolved<Example>(example, document),
  );
  const refusals = Number(status) >= 400;
  return html`<h3>${status}: ${inline(what)}</h3>
<p>${media === undefined ? "No body." : typeOf(media.schema as Schema)} Headers: ${inline(
    Object.keys(headers)
      .map((name) => `\`${name}\``)
      .join(", "),
  )}</p>
${refusals ? refusalTable(examples) : exampleList(examples)}`;
})}
</section>`;
}

function parameterTable(parameters: readonly Parameter[]): Html {
  const rows = parameters.map(
    ({ name, in: place, required, description = "", schema }) =>
      html`<tr><td><code>${name}</code></td><td>${place}${required ? ", required" : ""}</td><td>${typeOf(schema)}</td><td>${inline(description)}</td></tr>`,
  );
  return html`<table><tr><th>parameter</th><th>in</th><th>type</th><th>meaning</th></tr>${rows}</table>`;
}

function exampleList(examples: readonly Example[]): Html {
  const shown = examples.map(
    ({ summary, value }) =>
      html`<p>${summary}</p><pre>${typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre>`,
  );
  return html`${shown}`;
}

function refusalTable(examples: readonly Example[]): Html {
  const rows = examples.map(({ summary, description = "", value }) => {
    const { error = "" } = Object(value) as { error?: string };
    return html`<tr><td><code>${error}</code></td><td>${summary} ${inline(description)}</td></tr>`;
  });
  return html`<table>${rows}</table>`;
}

function schemaSection(name: string, schema: Schema): Html {
  const { description = "", properties, required = [] } = schema;
  const rows = Object.entries(properties ?? {}).map(
    ([field, value]) =>
      html`<tr><td><code>${field}</code></td><td>${typeOf(value)}${required.includes(field) ? ", always" : ""}</td><td>${inline(value.description ?? "")}</td><td>${value.example === undefined ? "" : html`<code>${JSON.stringify(value.example)}</code>`}</td></tr>`,
  );
  const body =
    properties === undefined
      ? html`<p>${typeOf(schema)}</p>`
      : html`<table><tr><th>field</th><th>type</th><th>meaning</th><th>example</th></tr>${rows}</table>`;
  return html`<h3 id="schema-${name}">${name}</h3>${prose(description)}${body}`;
}

function typeOf({
  $ref,
  anyOf,
  enum: values,
  const: value,
  items,
  type,
  properties,
  additionalProperties,
}: Schema): Html {
  if ($ref !== undefined) {
    const name = nameOf($ref);
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (anyOf !== undefined) return joined(anyOf.map(typeOf));
  if (value !== undefined) return html`<code>${JSON.stringify(value)}</code>`;
  if (values !== undefined) return joined(values.map((one) => html`<code>${JSON.stringify(one)}</code>`));
  if (items !== undefined) return html`list of ${typeOf(items)}`;
  if (properties !== undefined) {
    const fields = Object.entries(properties).map(
      ([name, field]) => html`<code>${name}</code> ${typeOf(field)}`,
    );
    return html`object of ${fields.map((field, at) => (at === 0 ? field : html`, ${field}`))}`;
  }
  if (additionalProperties !== undefined) return html`object`;
  return joined([type ?? "any"].flat().map((one) => html`${one}`));
}

const joined = (pieces: readonly Html[]) =>
  html`${pieces.map((piece, at) => (at === 0 ? piece : html` or ${piece}`))}`;

const nameOf = ($ref: string) => $ref.split("/").at(-1) ?? "";

function resolved<T>(value: unknown, document: ShownDocument): T {
  const { $ref } = Object(value) as { $ref?: string };
  if ($ref === undefined) return value as T;
  const [, , kind = "", name = ""] = $ref.split("/");
  const table = document.components[kind as keyof ShownDocument["components"]] as Record<string, unknown>;
  return table[name] as T;
}
