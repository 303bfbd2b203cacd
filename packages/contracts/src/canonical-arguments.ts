/**
 * The one text of a tool call's arguments, by which a repeated call is recognised: keys sorted by their UTF-16 code units
 * at all levels, no spaces, strings and numbers as JSON.stringify writes them. Takes what JSON.parse gives, nested as
 * deeply as a program likes. Pure.
 */

type Work = { text: string } | { value: unknown };

export function canonicalArguments(value: unknown): string {
  const texts: string[] = [];
  const work: Work[] = [{ value }];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if ("text" in next) texts.push(next.text);
    else if (typeof next.value !== "object" || next.value === null) texts.push(JSON.stringify(next.value));
    else work.push(...partsOf(next.value).reverse());
  }
  return texts.join("");
}

function partsOf(value: object): Work[] {
  const isArray = Array.isArray(value);
  const parts: Work[] = [{ text: isArray ? "[" : "{" }];
  const keys = isArray ? value.keys() : Object.keys(value).sort();
  for (const key of keys) {
    const comma = parts.length === 1 ? "" : ",";
    parts.push({ text: isArray ? comma : `${comma}${JSON.stringify(key)}:` });
    parts.push({ value: (value as Record<PropertyKey, unknown>)[key] });
  }
  parts.push({ text: isArray ? "]" : "}" });
  return parts;
}
