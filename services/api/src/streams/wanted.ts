/** Whether a caller wants events instead of one answer: it gives them a quality above JSON's (RFC 9110, section 12.5.1). Pure. */

export const EVENT_STREAM = "text/event-stream";

const JSON_TYPES = ["application/json", "application/*", "*/*"] as const;

export function wantsEvents(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const qualities = qualitiesOf(accept.toLowerCase());
  const json = JSON_TYPES.map((type) => qualities.get(type)).find((quality) => quality !== undefined) ?? 0;
  return (qualities.get(EVENT_STREAM) ?? 0) > json;
}

function qualitiesOf(accept: string): Map<string, number> {
  return new Map(
    accept.split(",").map((range) => {
      const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
      const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
      return [type, quality === undefined ? 1 : Number(quality) || 0] as const;
    }),
  );
}
