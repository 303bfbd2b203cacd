/** Whether an Accept header (RFC 9110, 12.5.1) is a browser's: it names text/html, and nothing with a higher quality. Pure. */
export function prefersHtml(accept: string | undefined): boolean {
  const ranges = (accept ?? "").toLowerCase().split(",").map(rangeOf);
  const html = ranges.find(({ type }) => type === "text/html");
  return html !== undefined && html.quality > 0 && ranges.every(({ quality }) => quality <= html.quality);
}

function rangeOf(text: string): { type: string; quality: number } {
  const [type = "", ...parameters] = text.split(";").map((word) => word.trim());
  const given = parameters.find((word) => word.startsWith("q="));
  const quality = given === undefined ? 1 : Number(given.slice(2));
  return { type, quality: Number.isNaN(quality) ? 0 : quality };
}
