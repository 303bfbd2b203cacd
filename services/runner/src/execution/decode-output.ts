/** Captured bytes as text: cut at a character border, invalid bytes as U+FFFD. Pure. */

/** The longest prefix of at most `cap` bytes that does not end within a UTF-8 character. */
export function cutAtCharacter(bytes: Buffer, cap: number): Buffer {
  if (bytes.length < cap) return bytes;
  const cut = bytes.subarray(0, cap);
  let start = cut.length - 1;
  for (let back = 0; back < 3 && start >= 0 && ((cut[start] ?? 0) & 0xc0) === 0x80; back++) start--;
  const lead = cut[start] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return length > 1 && start + length > cut.length ? cut.subarray(0, start) : cut;
}

/** Decodes captured output. `total`: bytes that the program wrote; only an overflowing stream is cut. */
export function captured(bytes: Buffer, total: number, cap: number): string {
  return (total > cap ? cutAtCharacter(bytes, cap) : bytes).toString("utf8");
}

/** Appends note lines, each on a line of its own. */
export function withNotes(stderr: string, notes: readonly string[]): string {
  if (notes.length === 0) return stderr;
  const separator = stderr === "" || stderr.endsWith("\n") ? "" : "\n";
  return `${stderr}${separator}${notes.map((note) => `[sandbox] ${note}\n`).join("")}`;
}
