/**
 * The format of an object file: the content, then its record as JSON, then a footer of 12 bytes. The footer is the length of the
 * JSON (unsigned 32-bit little-endian) and the magic bytes of the format. Content and record share one file: it takes one sync and
 * one link to make them visible, and neither exists without the other. Anything inconsistent is `damaged`.
 */
import { type ObjectRecord, objectRecordSchema } from "@svc/contracts";
import { type ObjectAddress, StoreError } from "../store.ts";

const MARK = Buffer.from("svcobj01");
export const FOOTER_BYTES = 4 + MARK.length;
/** Names and types are bounded, so the store never writes a longer record. */
const MAX_RECORD_BYTES = 64 * 1024;

export function encodeTrailer(record: ObjectRecord): Buffer {
  const json = Buffer.from(JSON.stringify(record));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  return Buffer.concat([json, length, MARK]);
}

/** Reads the length of the record from the footer, the last bytes of the file. */
export function recordLength(footer: Buffer): number {
  const length = footer.length === FOOTER_BYTES ? footer.readUInt32LE(0) : 0;
  if (!footer.subarray(4).equals(MARK) || length === 0 || length > MAX_RECORD_BYTES) {
    throw new StoreError("damaged", "the object file has no footer");
  }
  return length;
}

export function decodeRecord(json: Buffer, fileBytes: number, address: ObjectAddress): ObjectRecord {
  let value: unknown;
  try {
    value = JSON.parse(json.toString("utf8"));
  } catch (error) {
    throw new StoreError("damaged", "the record is not JSON", error);
  }
  const result = objectRecordSchema.safeParse(value);
  if (!result.success) throw new StoreError("damaged", "the record is not valid", result.error);
  const record = result.data;
  if (record.id !== address.file || record.storage_session_id !== address.session) {
    throw new StoreError("damaged", "the record belongs to another object");
  }
  if (record.size + json.length + FOOTER_BYTES !== fileBytes) {
    throw new StoreError("damaged", "the content does not have the recorded size", undefined, record);
  }
  return record;
}
