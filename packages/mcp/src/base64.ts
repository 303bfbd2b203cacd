/**
 * Strict base64: whole bytes, with padding, and no other characters. Otherwise several texts could stand for the same bytes. Pure.
 */
import { ServiceRefusal } from "./service.ts";

/** `field`: names the text in the refusal. */
export function base64Bytes(text: string, field: string): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") === text) return bytes;
  throw new ServiceRefusal(`${field}: must be base64 with padding, of A-Z a-z 0-9 + / alone.`);
}
