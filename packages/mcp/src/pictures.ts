/**
 * Recognizes the pictures that hosts show by their first bytes (as the formats specify). Names and media types come from the program
 * and are not trusted. Pure.
 */

const SIGNATURES: readonly (readonly [type: string, signature: RegExp])[] = [
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the signature has them.
  ["image/png", /^\x89PNG\r\n\x1a\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF[\s\S]{4}WEBP/],
];

const LONGEST = 16;

/** Undefined if the bytes are no such picture. */
export function pictureType(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, LONGEST)).toString("latin1");
  return SIGNATURES.find(([, signature]) => signature.test(start))?.[0];
}

/** Whether the media type claims a picture, so that the bytes are worth reading. */
export function isCalledPicture(contentType: string): boolean {
  return SIGNATURES.some(([type]) => type === contentType.split(";", 1)[0]?.trim().toLowerCase());
}
