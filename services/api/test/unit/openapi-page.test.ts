/** The page of the interface: all of the document, and nothing that the document could put into it but text. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { openApiDocument } from "../../src/openapi/document.ts";
import { html, inline, prose } from "../../src/openapi/html.ts";
import { PAGE_POLICY, pageOf, type ShownDocument } from "../../src/openapi/page.ts";

const document = JSON.parse(await openApiDocument()) as ShownDocument;
const page = pageOf(document, "1.2.3");

test("it names every operation, object, field, code and header", () => {
  for (const methods of Object.values(document.paths)) {
    for (const { operationId, responses } of Object.values(methods)) {
      expect(page).toContain(`<section id="${operationId}">`);
      for (const { headers = {} } of Object.values(responses)) {
        for (const name of Object.keys(headers)) expect(page).toContain(`<code>${name}</code>`);
      }
    }
  }
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    expect(page).toContain(`<h3 id="schema-${name}">`);
    for (const field of Object.keys((schema as { properties?: object }).properties ?? {})) {
      expect(page).toContain(`<code>${field}</code>`);
    }
  }
  for (const code of Object.keys(document.components.examples ?? {}))
    expect(page).toContain(`<code>${code}</code>`);
  expect(page).toContain("<title>svc 1.2.3: interface</title>");
});

test("every link leads to a place of the page, or to the document", () => {
  const links = [...page.matchAll(/href="([^"]*)"/g)].map(([, link]) => link ?? "");
  expect(links.length).toBeGreaterThan(50);
  const elsewhere = links.filter((link) => !link.startsWith("#"));
  expect(elsewhere).toEqual(["/v1/openapi.json"]);
  for (const link of links) if (link.startsWith("#")) expect(page).toContain(`id="${link.slice(1)}"`);
});

test("its one style is what the policy allows", () => {
  const styles = [...page.matchAll(/<style>(.*?)<\/style>/gs)].map(([, style]) => style ?? "");
  expect(styles).toHaveLength(1);
  const hash = createHash("sha256")
    .update(styles[0] ?? "")
    .digest("base64");
  expect(PAGE_POLICY).toContain(`style-src 'sha256-${hash}'`);
  expect(page).not.toMatch(/<script|\sstyle=|\son\w+=|src=/i);
});

test("text stays text, wherever the document has it", () => {
  const hostile = `<img src=x onerror=alert(1)>"'&`;
  const spoiled = JSON.parse(
    JSON.stringify(document)
      .replaceAll('"Run a program"', JSON.stringify(hostile))
      .replaceAll("print(6 * 7)", "</pre><b>"),
  ) as ShownDocument;
  const shown = pageOf(
    { ...spoiled, info: { title: hostile, description: `${hostile}\n\n\`${hostile}\`` } },
    hostile,
  );
  expect(shown).not.toMatch(/<img|<b>/);
  expect(shown).toContain("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;");
});

test("pieces are put together without being escaped twice", () => {
  expect(html`<p>${["<", html`<b>${1}</b>`]}</p>`.text).toBe("<p>&lt;<b>1</b></p>");
  expect(inline("a `<b>` c").text).toBe("a <code>&lt;b&gt;</code> c");
  expect(prose("a\nb\n\nc").text).toBe("<p>a\nb</p><p>c</p>");
});
