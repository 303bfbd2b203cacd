/**
 * The Content-Disposition of a download: always an attachment, with the file name once in plain ASCII for old clients and
 * once exactly, percent-encoded UTF-8 (RFC 5987). Pure; the name is the uploader's text.
 */

/** Names of real files hold no slash, and quotes, percent signs and backslashes are read differently by different clients. */
const UNSAFE_IN_ASCII = /[^\x20-\x7e]|["%/\\]/gu;
/** encodeURIComponent keeps these, but they are not safe in this place. */
const NOT_ENCODED = /[!'()*]/g;

export function attachment(filename: string): string {
  const ascii = filename.replace(UNSAFE_IN_ASCII, "_");
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encodeExtended(filename)}`;
}

function encodeExtended(text: string): string {
  return encodeURIComponent(text).replace(
    NOT_ENCODED,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
