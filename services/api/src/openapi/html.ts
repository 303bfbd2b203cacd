/** Builds pieces of an HTML page. Inserted values are escaped as text, unless they are pieces themselves. Pure. */

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const ESCAPED: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => ESCAPED[character] as string);

type Piece = Html | string | number | readonly Piece[];

const shown = (piece: Piece): string => {
  if (piece instanceof Html) return piece.text;
  return typeof piece === "object" ? piece.map(shown).join("") : escaped(String(piece));
};

export function html(parts: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return new Html(
    parts.map((part, at) => part + (at < pieces.length ? shown(pieces[at] as Piece) : "")).join(""),
  );
}

/** Makes paragraphs from text between empty lines, and code from text between backticks. */
export function prose(text: string): Html {
  const paragraphs = text.split(/\n{2,}/).map((paragraph) => html`<p>${inline(paragraph)}</p>`);
  return html`${paragraphs}`;
}

export function inline(text: string): Html {
  const pieces = text.split("`").map((piece, at) => (at % 2 === 1 ? html`<code>${piece}</code>` : piece));
  return html`${pieces}`;
}
