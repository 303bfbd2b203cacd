/** How objects are shown: the record of an upload, the metadata of a file, the four levels of detail of a listing. Pure. */
import { type FileDetail, type ObjectRecord, resourceIdOf, type UploadedFile } from "@svc/contracts";

const keyOf = (record: ObjectRecord) => `${record.storage_session_id}/${record.id}`;
const headersOf = (record: ObjectRecord) => ({
  "content-type": record.contentType,
  "original-filename": record.filename,
});

export function uploadedFile(record: ObjectRecord): UploadedFile {
  return {
    status: "success",
    name: record.filename,
    filename: record.filename,
    id: record.id,
    fileId: record.id,
    storage_session_id: record.storage_session_id,
    size: record.size,
    lastModified: record.lastModified,
    etag: record.etag,
    contentType: record.contentType,
    metadata: headersOf(record),
  };
}

export function fileMetadata(record: ObjectRecord): Record<string, unknown> {
  return {
    lastModified: record.lastModified,
    size: record.size,
    etag: record.etag,
    contentType: record.contentType,
    name: keyOf(record),
    originalFilename: record.filename,
    id: record.id,
    storage_session_id: record.storage_session_id,
    readOnly: record.readOnly,
  };
}

export function listed(record: ObjectRecord, detail: FileDetail): unknown {
  const { id, storage_session_id, size, etag, lastModified, contentType } = record;
  switch (detail) {
    case "simple":
      return keyOf(record);
    case "summary":
      return { name: keyOf(record), size, lastModified, etag };
    case "full":
      return {
        ...{ name: keyOf(record), size, lastModified, etag, id, storage_session_id },
        resource_id: resourceIdOf(record.namespace),
        contentType,
        metadata: headersOf(record),
      };
    case "normalized":
      return {
        ...{ id, name: record.filename, storage_session_id, size, contentType, lastModified },
        ...(record.readOnly ? { read_only: true } : {}),
      };
  }
}
