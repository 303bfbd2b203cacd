/** Parses the lists of pairs in OpenTelemetry's variables: `name=value,name=value` with percent-encoded values. Pure. */

/** Throws an Error for a malformed list. Its message does not show the text, which may be a secret. */
export function parsePairs(text: string): Record<string, string> {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      const name = pair.slice(0, at).trim();
      if (at < 0 || name === "") throw malformed();
      return [name, decoded(pair.slice(at + 1).trim())];
    }),
  );
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw malformed();
  }
}

const malformed = () => new Error("must be a comma list of name=value with percent-encoded values");
