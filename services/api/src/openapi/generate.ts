/** The OpenAPI document of an app, as text. The app must be ready. */
import type { HttpServer } from "@svc/service-kit";

export function documentOf(app: HttpServer): string {
  return `${JSON.stringify(withoutUnused(app.swagger() as Document), null, 2)}\n`;
}

interface Document {
  components?: { schemas?: Record<string, unknown> };
}

/** Each schema exists in a form for requests and one for answers: only those that a route refers to are kept. */
function withoutUnused(document: Document): Document {
  const schemas = document.components?.schemas ?? {};
  for (;;) {
    const text = JSON.stringify(document);
    const unused = Object.keys(schemas).filter((name) => !text.includes(`"#/components/schemas/${name}"`));
    if (unused.length === 0) return document;
    for (const name of unused) delete schemas[name];
  }
}
