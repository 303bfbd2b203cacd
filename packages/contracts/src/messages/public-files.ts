/** Schemas of the public interface under /v1 about files: uploads, metadata, lists, deletions. */
import { z } from "zod";
import { FILE_KINDS, publicId } from "./public-exec.ts";

const fileHeadersSchema = z
  .object({
    "content-type": z.string().meta({ description: "Its media type.", example: "text/csv" }),
    "original-filename": z.string().meta({ description: "Its name.", example: "data/points.csv" }),
  })
  .meta({ description: "As headers of the stored object." });

const fileName = z
  .string()
  .meta({ description: "Name as it was sent, with its folders.", example: "data/points.csv" });
const fileId = publicId.meta({ description: "Id of the file.", example: "V1StGXR8_Z5jdHi6B-myT" });
const storageSession = publicId.meta({
  description: "The storage session: one for all files of a request.",
  example: "kd83HtQmZ0_4vYcPa7-Rn",
});
const size = z.number().int().meta({ description: "Bytes.", example: 8 });
const etag = z
  .string()
  .meta({ description: "Changes with the bytes; without quotes.", example: "0cc175b9c0f1b6a8" });
const contentType = z.string().meta({ description: "Media type, as it is stored.", example: "text/csv" });
const lastModified = z
  .string()
  .meta({ description: "When it was stored, ISO 8601 in UTC.", example: "2026-01-31T10:00:00.000Z" });
const objectName = z.string().meta({
  description: "`<session>/<file id>`",
  example: "kd83HtQmZ0_4vYcPa7-Rn/V1StGXR8_Z5jdHi6B-myT",
});

export const uploadedFileSchema = z
  .object({
    status: z.literal("success").meta({ description: "It was stored.", example: "success" }),
    name: fileName,
    filename: fileName.meta({ description: "The same as `name`.", example: "data/points.csv" }),
    id: fileId,
    fileId: fileId.meta({ description: "The same as `id`.", example: "V1StGXR8_Z5jdHi6B-myT" }),
    storage_session_id: storageSession,
    size,
    lastModified,
    etag,
    contentType,
    metadata: fileHeadersSchema,
  })
  .meta({ id: "UploadedFile", description: "A file that was stored." });
export type UploadedFile = z.infer<typeof uploadedFileSchema>;

export const failedUploadSchema = z
  .object({
    status: z.literal("error").meta({ description: "It was not stored.", example: "error" }),
    filename: fileName,
    error: z.string().meta({ description: "Stable code of the file's failure.", example: "file_too_large" }),
    message: z
      .string()
      .meta({ description: "A sentence for a person.", example: "The file is larger than 25 MiB." }),
  })
  .meta({ id: "FailedUpload", description: "A file that was not stored." });

export const uploadResponseSchema = z
  .object({
    message: z.literal("success").meta({ description: "All files were stored.", example: "success" }),
    storage_session_id: storageSession,
    files: z.array(uploadedFileSchema).meta({ description: "The files in the order of the form." }),
  })
  .meta({ id: "UploadResponse", description: "The files, all stored." });

export const batchUploadResponseSchema = z
  .object({
    message: z
      .enum(["success", "partial_success", "error"])
      .meta({ description: "All, some or none of the files were stored.", example: "partial_success" }),
    error: z
      .literal("upload_failed")
      .optional()
      .meta({ description: "When none was stored.", example: "upload_failed" }),
    request_id: z
      .string()
      .optional()
      .meta({ description: "With `error`: as in `X-Request-Id`.", example: "req-7f3a" }),
    storage_session_id: storageSession,
    files: z
      .array(z.union([uploadedFileSchema, failedUploadSchema]))
      .meta({ description: "The files in the order of the form." }),
    succeeded: z.number().int().meta({ description: "Files that were stored.", example: 1 }),
    failed: z.number().int().meta({ description: "Files that were not stored.", example: 1 }),
    filesLimitReached: z
      .literal(true)
      .optional()
      .meta({ description: "Files beyond `maxFiles` were not stored.", example: true }),
    maxFiles: z
      .number()
      .int()
      .optional()
      .meta({ description: "With `filesLimitReached`: how many a request may hold.", example: 200 }),
    details: z
      .string()
      .optional()
      .meta({ description: "With `error`: a sentence for a person.", example: "No file could be stored." }),
  })
  .meta({ id: "BatchUploadResponse", description: "Each file, stored or not." });

export const fileMetadataSchema = z
  .object({
    lastModified,
    size,
    etag,
    contentType,
    name: objectName,
    originalFilename: fileName,
    id: fileId,
    storage_session_id: storageSession,
    readOnly: z.boolean().meta({ description: "Programs cannot change it.", example: false }),
  })
  .meta({ id: "FileMetadata", description: "What is known of the file." });

export const fileListSchema = z
  .array(
    z.union([
      z.string().meta({
        description: "detail=simple: `<session>/<file id>`",
        example: "kd83HtQmZ0_4vYcPa7-Rn/V1StGXR8_Z5jdHi6B-myT",
      }),
      z
        .object({
          name: objectName,
          size,
          lastModified,
          etag,
          id: fileId.optional(),
          storage_session_id: storageSession.optional(),
          resource_id: z
            .string()
            .optional()
            .meta({ description: "Of a file of an agent or skill: its id.", example: "agent-7" }),
          contentType: contentType.optional(),
          metadata: fileHeadersSchema.optional(),
        })
        .meta({ description: "detail=summary: the first four; detail=full: all." }),
      z
        .object({
          id: fileId,
          name: fileName,
          storage_session_id: storageSession,
          size,
          contentType,
          lastModified,
          read_only: z
            .literal(true)
            .optional()
            .meta({ description: "Programs cannot change it.", example: true }),
        })
        .meta({ description: "detail=normalized" }),
    ]),
  )
  .meta({ id: "FileList", description: "One entry for each file, in the form that `detail` asks for." });

export const fileDetailSchema = z
  .enum(["simple", "summary", "full", "normalized"])
  .meta({ description: "How much each entry tells.", example: "normalized" });
export type FileDetail = z.infer<typeof fileDetailSchema>;

/** The owner of the files in a request. The API checks afterwards that kind, id and version fit together. */
const ownerFields = {
  kind: z
    .enum(FILE_KINDS)
    .optional()
    .meta({ description: "Whose files they are; default `user`: the caller's own.", example: "user" }),
  id: z
    .string()
    .optional()
    .meta({ description: "Resource id; required for agent and skill.", example: "agent-7" }),
  version: z
    .string()
    .optional()
    .meta({ description: "Number; required for skill, refused for others.", example: "1" }),
};
export const fileOwnerQuerySchema = z.object(ownerFields);

export const fileParamsSchema = z.object({
  session_id: publicId.meta({
    description: "The storage session of the file.",
    example: "kd83HtQmZ0_4vYcPa7-Rn",
  }),
  fileId,
});

export const sessionParamsSchema = fileParamsSchema.pick({ session_id: true });

/** The form of both upload routes. Fields and files may come in any order. */
export const uploadFormSchema = z
  .object({
    file: z
      .array(z.string().meta({ format: "binary" }))
      .meta({ description: "One or more files, under any field name.", example: ["x,y\n1,2\n"] }),
    ...ownerFields,
    read_only: z
      .string()
      .optional()
      .meta({ description: "`true`: every file of the request is read-only.", example: "true" }),
  })
  .meta({ id: "UploadForm", description: "Files, and whose they are." });

export const deletedFileSchema = z
  .object({
    message: z
      .literal("File deleted successfully")
      .meta({ description: "Always the same.", example: "File deleted successfully" }),
    session_id: publicId.meta({ description: "As in the path.", example: "kd83HtQmZ0_4vYcPa7-Rn" }),
    fileId,
  })
  .meta({ id: "DeletedFile", description: "The file is deleted." });
