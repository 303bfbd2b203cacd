/**
 * Receives an upload form. Files are streamed to the file server as they arrive, as pending files of a new session that nobody can see.
 * When the form has ended and its fields are known, one commit makes them visible in the caller's namespace. After a failure, or when the
 * client disconnects, the pending files are discarded. The files of a commit with unknown outcome are deleted, because nobody knows
 * their ids. If this process dies first, the file server sweeps the pending files later.
 */
import {
  type CommitSession,
  namespaceOf,
  newId,
  type Principal,
  ServiceError,
  type UploadedFile,
} from "@svc/contracts";
import {
  BodyReader,
  type Config,
  errorText,
  type FastifyRequest,
  type Log,
  mapLimited,
  nameLimits,
} from "@svc/service-kit";

import type { CallContext, FileStorage } from "./file-storage.ts";
import { FormFields } from "./form-fields.ts";
import { invalidMultipart } from "./multipart/invalid.ts";
import { boundaryOf } from "./multipart/part-headers.ts";
import { MultipartReader } from "./multipart/reader.ts";
import { type StoredPart, storePart } from "./store-part.ts";
import type { UploadOutcome } from "./upload-answer.ts";

export interface UploadSettings {
  principal: Principal;
  maxFileBytes: number;
  /** `all`: the first bad file refuses the request. `some`: bad files are reported, the others are kept. */
  keep: "all" | "some";
}

/** Files above the limit are only reported, which is cheap, but not free. */
const MAX_SURPLUS_FILES = 1000;
/** Counts known and ignored fields. */
const MAX_FIELDS = 32;
const PARALLEL_DELETIONS = 8;
const FORM_OVERHEAD_BYTES = 16 * 1024 * 1024;

export async function receiveUpload(
  config: Config,
  log: Log,
  storage: FileStorage,
  request: FastifyRequest,
  settings: UploadSettings,
): Promise<UploadOutcome> {
  const context = { requestId: request.id };
  const session = newId();
  const account = accountFor(settings.principal);
  let commit: CommitSession | undefined;
  let isCommitted = false;
  try {
    const { fields, parts } = await receiveForm(config, storage, session, request, settings);
    const namespace = namespaceOf(settings.principal, fields.owner());
    if (parts.length === 0) throw new ServiceError("no_files");
    const files = parts.flatMap((part) => (part.ok ? [part.id] : []));
    let stored: UploadedFile[] = [];
    if (files.length > 0) {
      commit = { namespace, account, read_only: fields.readOnly(), files };
      stored = await storage.commit(session, commit, context);
      isCommitted = true;
    }
    return { session, parts, stored, maxFiles: config.UPLOAD_MAX_FILES };
  } finally {
    if (!isCommitted) await discard(storage, { session, account, commit }, log, context);
  }
}

async function receiveForm(
  config: Config,
  storage: FileStorage,
  session: string,
  request: FastifyRequest,
  { principal, keep, maxFileBytes }: UploadSettings,
): Promise<{ fields: FormFields; parts: StoredPart[] }> {
  const boundary = boundaryOf(request.headers["content-type"]);
  const body = new BodyReader(request.raw, {
    maxBytes: config.UPLOAD_MAX_FILES * config.MAX_FILE_SIZE + FORM_OVERHEAD_BYTES,
    timeoutMs: config.BODY_TIMEOUT_MS,
    silenceMs: config.UPLOAD_PART_TIMEOUT_MS,
    late: () => new ServiceError("upload_timeout"),
  });
  const form = new MultipartReader(body, boundary);
  const bounds = { maxBytes: maxFileBytes, names: nameLimits(config), account: accountFor(principal) };
  const fields = new FormFields();
  const parts: StoredPart[] = [];
  for (let fieldCount = 0; ; ) {
    const part = await form.nextPart();
    if (part === undefined) return { fields, parts };
    if (part.filename === undefined) {
      if (++fieldCount > MAX_FIELDS) throw invalidMultipart("too many fields");
      await fields.add(part);
      continue;
    }
    if (parts.length >= config.UPLOAD_MAX_FILES + MAX_SURPLUS_FILES) throw invalidMultipart("too many parts");
    const stored: StoredPart =
      parts.length < config.UPLOAD_MAX_FILES
        ? await storePart(storage, session, part, bounds, { requestId: request.id })
        : { ok: false, filename: part.filename, error: tooMany(config.UPLOAD_MAX_FILES) };
    if (!stored.ok && keep === "all") throw stored.error;
    parts.push(stored);
  }
}

/** All uploads of a caller count towards the caller's quota, whichever agent or skill they are for. */
const accountFor = (principal: Principal) => namespaceOf(principal, { kind: "user" });

/** `commit`: one that may have succeeded. After the discard it can no longer succeed, so only then its files are deleted. */
async function discard(
  storage: FileStorage,
  { session, account, commit }: { session: string; account: string; commit: CommitSession | undefined },
  log: Log,
  context: CallContext,
): Promise<void> {
  try {
    await storage.discard(session, account, context);
    if (commit === undefined) return;
    const { namespace, files } = commit;
    await mapLimited(files, PARALLEL_DELETIONS, (file) =>
      storage.delete({ session, file }, namespace, context).catch(unlessNotFound),
    );
  } catch (error) {
    log.warn(
      { request_id: context.requestId, err: errorText(error) },
      "removing files of a failed upload failed; the sweep removes them",
    );
  }
}

function unlessNotFound(error: unknown): void {
  if (!(error instanceof ServiceError && error.code === "file_not_found")) throw error;
}

function tooMany(limit: number): ServiceError {
  return new ServiceError("too_many_files", `A request may hold ${limit} files.`);
}
