/**
 * One answer with a run's small inputs and the directories of its sessions: POST /inputs of the egress gateway (handles) and of the file
 * server (ids). The answer is the length of its head (4 bytes, big-endian), the head as JSON, then the content of each file.
 * An entry is missing when it was not found, is not available now, or does not fit. A separate request for it then tells why.
 */
import { z } from "zod";
import { MAX_INPUTS } from "./gateway.ts";

/** Limit of one answer: file contents plus directory names. */
export const MAX_BATCH_BYTES = 2 ** 20;
/** Larger files cost less as separate streams. */
export const MAX_BATCHED_FILE_BYTES = 128 * 1024;
export const INPUT_BATCH_TYPE = "application/vnd.svc.input-batch";
/** Requests are this large because a handle contains the file's name. */
export const MAX_BATCH_REQUEST_BYTES = 2 ** 20;

/** `.dirkeep` files of one session, at most. */
export const MAX_DIRKEEPS = 50;

const LENGTH_BYTES = 4;
/** Upper bound for one file's entry in the head, or for the brackets of one session's directories. */
const ENTRY_BYTES = 160;
const MAX_HEAD_BYTES = MAX_BATCH_BYTES + 2 * MAX_INPUTS * ENTRY_BYTES;
export const MAX_BATCH_ANSWER_BYTES = LENGTH_BYTES + MAX_HEAD_BYTES + MAX_BATCH_BYTES;

const text = z.string().min(1).max(4096);

/** `directories`: asks for the `.dirkeep` files of these sessions. */
export const batchRequestSchema = z.object({
  files: z.array(z.object({ storage_session_id: text, id: text })).max(MAX_INPUTS),
  directories: z.array(text).max(MAX_INPUTS),
});
export type BatchRequest = z.infer<typeof batchRequestSchema>;

const headSchema = z.object({
  files: z.array(
    z
      .object({
        size: z.number().int().nonnegative().max(MAX_BATCHED_FILE_BYTES),
        etag: z.string().regex(/^[0-9a-f]{64}$/),
        read_only: z.boolean(),
      })
      .nullable(),
  ),
  directories: z.array(z.array(z.string()).max(MAX_DIRKEEPS).nullable()),
});

export interface BatchedFile {
  etag: string;
  readOnly: boolean;
  content: Buffer;
}

/** In the order of the request. */
export interface InputBatch {
  files: readonly (BatchedFile | undefined)[];
  /** Names of `.dirkeep` files. */
  directories: readonly (readonly string[] | undefined)[];
}

export function encodeInputBatch({ files, directories }: InputBatch): Buffer {
  const head: z.infer<typeof headSchema> = {
    files: files.map((file) =>
      file === undefined ? null : { size: file.content.length, etag: file.etag, read_only: file.readOnly },
    ),
    directories: directories.map((names) => (names === undefined ? null : [...names])),
  };
  const bytes = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes, ...files.map((file) => file?.content ?? Buffer.alloc(0))]);
}

/** The contents share memory with `bytes`. Throws when `bytes` is not an answer to the request. */
export function decodeInputBatch(bytes: Buffer, request: BatchRequest): InputBatch {
  if (bytes.length < LENGTH_BYTES) throw new Error("the batch of inputs is cut off");
  const end = LENGTH_BYTES + bytes.readUInt32BE(0);
  if (end > bytes.length || end > LENGTH_BYTES + MAX_HEAD_BYTES)
    throw new Error("the batch of inputs has no head");
  const head = headSchema.parse(JSON.parse(bytes.toString("utf8", LENGTH_BYTES, end)));
  if (head.files.length !== request.files.length || head.directories.length !== request.directories.length)
    throw new Error("the batch of inputs answers another request");
  let at = end;
  const files = head.files.map((file) => {
    if (file === null) return undefined;
    const content = bytes.subarray(at, at + file.size);
    at += file.size;
    return { etag: file.etag, readOnly: file.read_only, content };
  });
  if (at !== bytes.length) throw new Error("the batch of inputs has another size than its head says");
  return { files, directories: head.directories.map((names) => names ?? undefined) };
}

/** How many of the requested entries are missing. */
export function missingIn({ files, directories }: InputBatch): number {
  return [...files, ...directories].filter((found) => found === undefined).length;
}
