/** The OpenAPI document of an app, as text. The app must be ready. */
import type { HttpServer } from "@svc/service-kit";
import { complete, type Document } from "./complete.ts";

export function documentOf(app: HttpServer): string {
  const document = structuredClone(app.swagger()) as unknown as Document;
  return `${JSON.stringify(sorted(withoutUnused(complete(document))), null, 2)}\n`;
}

/** Sorts the schemas by name. Otherwise they are in the order in which modules were loaded. */
function sorted(document: Document): Document {
  const schemas = Object.entries(document.components.schemas).sort(([a], [b]) => (a < b ? -1 : 1));
  document.components.schemas = Object.fromEntries(schemas);
  return document;
}

const PRUNED = ["schemas", "examples"] as const;

/** Drops what nothing refers to: each schema exists in a form for requests and in one for answers, and one may be unused. */
function withoutUnused(document: Document): Document {
  for (;;) {
    const text = JSON.stringify(document);
    const unused = PRUNED.flatMap((kind) =>
      Object.keys(document.components[kind] ?? {})
        .filter((name) => !text.includes(`"#/components/${kind}/${name}"`))
        .map((name) => ({ kind, name })),
    );
    if (unused.length === 0) return document;
    for (const { kind, name } of unused) delete document.components[kind]?.[name];
  }
}
