/** Names as attackers choose them: of parts that mean something to a path, a shell, a terminal, a header or a page. */
import fc from "fast-check";

// biome-ignore format: one line for each kind
const PARTS = [
  "a", "data", ".", "..", "...", "/", "//", "\\", " ", "-rf", "~", "%2e%2e%2f", "%00", "\0", "\n", "\r\n", "\t", "\u001b[2J",
  "\u007f", "\u0085", "\u009b", "\u202e", "\u200b", "\ufeff", "\u2028", "\ufffd", "\ud800", "\udfff", "\u{1f389}", "\u{10ffff}",
  "e\u0301", "\u00e9", "\u212a", "K", "\uff0e\uff0e\uff0f", "\u2024\u2024", "\u2215", "\u29f8", "C:", "con", "file:", "'", '"', "$(id)", "`", "<b>",
  ".dirkeep", "__proto__", "constructor", "main.py", "x".repeat(127), "é".repeat(127), "漢".repeat(86),
];

export const hostileName = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.array(fc.constantFrom(...PARTS), { maxLength: 14 }).map((parts) => parts.join("")),
  },
  {
    weight: 2,
    arbitrary: fc.array(fc.constantFrom(...PARTS), { maxLength: 14 }).map((parts) => parts.join("/")),
  },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 300 }) },
);

/** Any bytes that a file system takes as a name, several of them as a path. */
export const namesOfBytes = fc
  .array(
    fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 255 }),
      hostileName.map((name) => Buffer.from(name).subarray(0, 255)),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((names) =>
    names
      .map((name) => Buffer.from(name).map((byte) => (byte === 0 || byte === 0x2f ? 0x78 : byte)))
      .filter((name) => name.length > 0 && name.toString() !== "." && name.toString() !== ".."),
  )
  .filter((names) => names.length > 0)
  .map((names) => Buffer.concat(names.flatMap((name, at) => (at === 0 ? [name] : [Buffer.from("/"), name]))));
