/** Schemas of the public interface under /v1 about files: uploads, metadata, lists, deletions. */
import { z } from "zod";
import { FILE_KINDS, publicId } from "./public-exec.ts";

const fileHeadersSchema = z.object({ "content-type": z.string(), "original-filename": z.string() });

export const uploadedFileSchema = z
  .object({
    status: z.literal("success"),
    name: z.string(),
    filename: z.string(),
    id: publicId,
    fileId: publicId,
    storage_session_id: publicId,
    size: z.number().int(),
    lastModified: z.string(),
    etag: z.string(),
    contentType: z.string(),
    metadata: fileHeadersSchema,
  })
  .meta({ id: "UploadedFile" });
export type UploadedFile = z.infer<typeof uploadedFileSchema>;

export const failedUploadSchema = z
  .object({
    status: z.literal("error"),
    filename: z.string(),
    error: z.string().meta({ description: "Stable code of the file's failure." }),
    message: z.string(),
  })
  .meta({ id: "FailedUpload" });

export const uploadResponseSchema = z
  .object({
    message: z.literal("success"),
    storage_session_id: publicId,
    files: z.array(uploadedFileSchema),
  })
  .meta({ id: "UploadResponse" });

export const batchUploadResponseSchema = z
  .object({
    message: z.enum(["success", "partial_success", "error"]),
    error: z.literal("upload_failed").optional(),
    request_id: z.string().optional(),
    storage_session_id: publicId,
    files: z.array(z.union([uploadedFileSchema, failedUploadSchema])),
    succeeded: z.number().int(),
    failed: z.number().int(),
    filesLimitReached: z.literal(true).optional(),
    maxFiles: z.number().int().optional(),
    details: z.string().optional().meta({ description: "With `error`: a sentence for a person." }),
  })
  .meta({ id: "BatchUploadResponse" });

export const fileMetadataSchema = z
  .object({
    lastModified: z.string(),
    size: z.number().int(),
    etag: z.string(),
    contentType: z.string(),
    name: z.string().meta({ description: "`<session>/<file id>`" }),
    originalFilename: z.string(),
    id: publicId,
    storage_session_id: publicId,
    readOnly: z.boolean(),
  })
  .meta({ id: "FileMetadata" });

export const fileListSchema = z
  .array(
    z.union([
      z.string().meta({ description: "detail=simple: `<session>/<file id>`" }),
      z
        .object({
          name: z.string(),
          size: z.number().int(),
          lastModified: z.string(),
          etag: z.string(),
          id: publicId.optional(),
          storage_session_id: publicId.optional(),
          resource_id: z.string().optional(),
          contentType: z.string().optional(),
          metadata: fileHeadersSchema.optional(),
        })
        .meta({ description: "detail=summary: the first four; detail=full: all." }),
      z.object({
        id: publicId,
        name: z.string().meta({ description: "detail=normalized: the original file name" }),
        storage_session_id: publicId,
        size: z.number().int(),
        contentType: z.string(),
        lastModified: z.string(),
        read_only: z.literal(true).optional(),
      }),
    ]),
  )
  .meta({ id: "FileList" });

export const fileDetailSchema = z.enum(["simple", "summary", "full", "normalized"]);
export type FileDetail = z.infer<typeof fileDetailSchema>;

/** Whose files a request speaks of. What fits together (kind, id, version) is checked by the API afterwards. */
export const fileOwnerQuerySchema = z.object({
  kind: z.enum(FILE_KINDS).optional().meta({ description: "Default `user`." }),
  id: z.string().optional().meta({ description: "Resource id of an agent or skill." }),
  version: z.string().optional().meta({ description: "Version of a skill, as a number." }),
});

export const fileParamsSchema = z.object({ session_id: publicId, fileId: publicId });

export const sessionParamsSchema = z.object({ session_id: publicId });

/** The form of both upload routes. Fields and files may come in any order. */
export const uploadFormSchema = z
  .object({
    file: z
      .array(z.string().meta({ format: "binary" }))
      .meta({ description: "One or more files, under any field name." }),
    kind: z.enum(FILE_KINDS).optional(),
    id: z.string().optional().meta({ description: "Resource id; required for agent and skill." }),
    version: z.string().optional().meta({ description: "Number; required for skill, refused for others." }),
    read_only: z.string().optional().meta({ description: "`true`: every file of the request is read-only." }),
  })
  .meta({ id: "UploadForm" });

export const deletedFileSchema = z
  .object({
    message: z.literal("File deleted successfully"),
    session_id: publicId,
    fileId: publicId,
  })
  .meta({ id: "DeletedFile" });
