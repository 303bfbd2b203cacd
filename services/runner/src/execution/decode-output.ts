/** Captured bytes as text: cut at a character boundary, invalid bytes as U+FFFD. Pure. */

/** Decodes piece by piece: an incomplete character is kept for the next piece. */
export function outputDecoder(): { decode(bytes: Buffer): string } {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return { decode: (bytes) => decoder.decode(bytes, { stream: true }) };
}

/** The text of output that may go on: without an incomplete last character, as in the events. */
export const unfinished = (bytes: Buffer): string => outputDecoder().decode(bytes);

/** Decodes captured output. `total`: bytes that the program wrote; only an overflowing stream is cut. */
export function captured(bytes: Buffer, total: number, cap: number): string {
  return total > cap ? unfinished(bytes.subarray(0, cap)) : bytes.toString("utf8");
}

/** Appends note lines, each on a line of its own. */
export function withNotes(stderr: string, notes: readonly string[]): string {
  if (notes.length === 0) return stderr;
  const separator = stderr === "" || stderr.endsWith("\n") ? "" : "\n";
  return `${stderr}${separator}${notes.map((note) => `[sandbox] ${note}\n`).join("")}`;
}
