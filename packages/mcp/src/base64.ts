/** Base64 that is made of whole bytes, with its padding and without anything else: other text says what it holds in more than one way. Pure. */
import { ServiceRefusal } from "./service.ts";

/** `field`: names the text in the refusal. */
export function base64Bytes(text: string, field: string): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") === text) return bytes;
  throw new ServiceRefusal(`${field}: must be base64 with padding, of A-Z a-z 0-9 + / alone.`);
}
