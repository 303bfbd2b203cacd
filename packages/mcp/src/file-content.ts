/** Turns the bytes of a file into content of a result. Pure. */
import { isUtf8 } from "node:buffer";
import type {
  BlobResourceContents,
  ContentBlock,
  TextResourceContents,
} from "@modelcontextprotocol/sdk/types.js";
import { pictureType } from "./pictures.ts";

/** Maximum size of a file that is read as a whole. */
export const MAX_READ_BYTES = 4 * 2 ** 20;

export function contentOfFile(uri: string, bytes: Uint8Array): ContentBlock {
  const picture = pictureType(bytes);
  if (picture !== undefined) return { type: "image", data: base64(bytes), mimeType: picture };
  if (isUtf8(bytes)) return { type: "text", text: new TextDecoder().decode(bytes) };
  return { type: "resource", resource: resourceOf(uri, bytes) };
}

export function resourceOf(uri: string, bytes: Uint8Array): TextResourceContents | BlobResourceContents {
  if (isUtf8(bytes)) return { uri, mimeType: "text/plain", text: new TextDecoder().decode(bytes) };
  return { uri, mimeType: pictureType(bytes) ?? "application/octet-stream", blob: base64(bytes) };
}

export const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
