/**
 * Turns the result of a run into content: its output and how it ended as text, then pictures, then links to the other files.
 * Bounded: the service limits outputs, and this module limits pictures. A picture beyond the limit becomes a link.
 */

import type { ContentBlock } from "@modelcontextprotocol/sdk/types.js";
import type { Result, ResultFile } from "svc-client";
import { base64 } from "./file-content.ts";
import { isCalledPicture, pictureType } from "./pictures.ts";
import { type Service, ServiceRefusal } from "./service.ts";
import { fileUri } from "./uris.ts";

/** Maximum size of all pictures of a run together. */
export const MAX_PICTURE_BYTES = 4 * 2 ** 20;
export const MAX_PICTURES = 8;

export async function contentOf(
  answer: Result,
  service: Service,
  signal: AbortSignal,
): Promise<ContentBlock[]> {
  const files = answer.files.filter(({ inherited }) => inherited !== true);
  const pictures = await picturesOf(files, service, signal);
  const links = files.filter((file) => !pictures.has(file)).map(linkTo);
  return [{ type: "text", text: textOf(answer, files) }, ...pictures.values(), ...links];
}

/** Reads pictures one after the other, because each must fit into the bytes that the earlier ones left. */
async function picturesOf(
  files: readonly ResultFile[],
  service: Service,
  signal: AbortSignal,
): Promise<Map<ResultFile, ContentBlock>> {
  const pictures = new Map<ResultFile, ContentBlock>();
  let left = MAX_PICTURE_BYTES;
  for (const file of files) {
    if (pictures.size === MAX_PICTURES) break;
    if (!isCalledPicture(file.content_type) || file.size > left) continue;
    const bytes = await bytesOf(file, left, service, signal);
    const mimeType = bytes && pictureType(bytes);
    if (bytes === undefined || mimeType === undefined) continue;
    pictures.set(file, { type: "image", data: base64(bytes), mimeType });
    left -= bytes.length;
  }
  return pictures;
}

/** Undefined if the service refuses. The run still has its result, and the picture becomes a link. */
async function bytesOf(
  { id, storage_session_id: session_id }: ResultFile,
  maxBytes: number,
  service: Service,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  try {
    return await service.download({ id, session_id }, maxBytes, signal);
  } catch (error) {
    if (error instanceof ServiceRefusal) return undefined;
    throw error;
  }
}

function linkTo({ id, storage_session_id: session_id, name, size, content_type }: ResultFile): ContentBlock {
  return { type: "resource_link", uri: fileUri({ session_id, id }), name, mimeType: content_type, size };
}

/** Standard output unchanged, then the other parts, each marked by brackets. */
function textOf(answer: Result, files: readonly ResultFile[]): string {
  const { stdout, stderr, code, signal, message } = answer;
  const parts = [
    stdout,
    ...(stderr === "" ? [] : ["[standard error]", stderr]),
    ...(code === 0 ? [] : [`[exit code ${code}${signal === null ? "" : `, ${signal}`}]`]),
    ...(message === null ? [] : [`[${message}]`]),
    ...(answer.session_state_restore_failed === true
      ? ["[the session could not be restored: this run began with nothing]"]
      : []),
    ...(files.length === 0 ? [] : ["[files]", ...files.map(lineOf)]),
  ];
  const text = parts
    .map((part) => part.replace(/\n$/, ""))
    .filter((part) => part !== "")
    .join("\n");
  return text === "" ? "[no output, exit code 0]" : text;
}

/** Includes the ids that run_code and read_file need to refer to the file. */
function lineOf({ name, id, storage_session_id, size }: ResultFile): string {
  return `${JSON.stringify(name)}: ${size} bytes, id ${id}, session_id ${storage_session_id}`;
}
