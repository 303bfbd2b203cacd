/** The format of a stored entry: the object's record, and which write holds its bytes. Anything inconsistent is `damaged`. */
import { objectRecordSchema } from "@svc/contracts";
import { z } from "zod";
import { type ObjectAddress, StoreError } from "../store.ts";

const entrySchema = z.object({
  format: z.literal(1),
  record: objectRecordSchema,
  /** Last part of the content's key. */
  content: z.string().regex(/^[0-9a-f]{32}$/),
  /** Visible only together with the rest of its batch. */
  batch: z.boolean(),
});

export type Entry = z.infer<typeof entrySchema>;

export function encodeEntry(entry: Entry): string {
  return JSON.stringify(entry);
}

export function decodeEntry(text: string, address: ObjectAddress): Entry {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new StoreError("damaged", "the record is not JSON", error);
  }
  const result = entrySchema.safeParse(value);
  if (!result.success) throw new StoreError("damaged", "the record is not valid", result.error);
  const { record } = result.data;
  if (record.id !== address.file || record.storage_session_id !== address.session) {
    throw new StoreError("damaged", "the record belongs to another object");
  }
  return result.data;
}
