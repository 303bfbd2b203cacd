/** Messages that the file server reads and the records that it writes. */
import { z } from "zod";
import { idSchema } from "../ids.ts";

/** What the file server knows of a stored object. Times are ISO 8601 UTC with milliseconds. */
export const objectRecordSchema = z.object({
  id: idSchema,
  storage_session_id: idSchema,
  namespace: z.string(),
  filename: z.string(),
  size: z.number().int().nonnegative(),
  etag: z.string(),
  contentType: z.string(),
  lastModified: z.string(),
  readOnly: z.boolean(),
  /** Where the file came from. Absent for snapshots, and in records older than this field. */
  origin: z.enum(["upload", "output"]).optional(),
  /** The account whose quota the object counts against; absent when that is its namespace. */
  account: z.string().optional(),
});
export type ObjectRecord = z.infer<typeof objectRecordSchema>;

/** Redis key of the cached record of one object: JSON of ObjectRecord. Written by the file server, read by the API. */
export function objectRecordKey(sessionId: string, fileId: string): string {
  return `svc:object:${sessionId}:${fileId}`;
}

/** Replaces the cached record of a deleted object, so that a late reader does not cache the record again. Ids are never reused. */
export const DELETED_RECORD = "null";

/** Body of POST /sessions/:sid/commit on the file server: makes pending objects visible under their namespace. */
export const commitSessionSchema = z.object({
  namespace: z.string().min(1),
  /** The account whose quota the files count against; the namespace when absent. */
  account: z.string().min(1).optional(),
  read_only: z.boolean(),
  files: z
    .array(idSchema)
    .min(1)
    .refine((files) => new Set(files).size === files.length, "must not name a file twice"),
});
export type CommitSession = z.infer<typeof commitSessionSchema>;

/** The problem that the file server reports when another object already has the id. */
export const ID_TAKEN = { path: "fileId", problem: "is taken" } as const;
