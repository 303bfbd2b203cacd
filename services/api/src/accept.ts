/** What a caller prefers by its Accept header (RFC 9110, section 12.5.1). Pure, one pass. */

export const EVENT_STREAM = "text/event-stream";

const HTML = "text/html";
const JSON_TYPES = ["application/json", "application/*", "*/*"] as const;

/** Whether a caller wants events instead of one answer: it gives them a higher quality than JSON. */
export function wantsEvents(accept: string | undefined): boolean {
  const qualities = qualitiesOf(accept);
  const json = JSON_TYPES.map((type) => qualities.get(type)).find((quality) => quality !== undefined) ?? 0;
  return (qualities.get(EVENT_STREAM) ?? 0) > json;
}

/** Whether the header looks like a browser's: it names text/html, and nothing with a higher quality. */
export function prefersHtml(accept: string | undefined): boolean {
  const qualities = qualitiesOf(accept);
  const html = qualities.get(HTML) ?? 0;
  return html > 0 && [...qualities.values()].every((quality) => quality <= html);
}

/** Media ranges in lower case with their qualities; a quality that is not a number counts as 0. */
function qualitiesOf(accept = ""): Map<string, number> {
  return new Map(
    accept
      .toLowerCase()
      .split(",")
      .map((range) => {
        const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
        const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
        return [type, quality === undefined ? 1 : Number(quality) || 0] as const;
      })
      .filter(([type]) => type !== ""),
  );
}
