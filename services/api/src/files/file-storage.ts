/** The API's client of the file server. Calls for stored files name the namespace they act for, except `record`. */
import {
  ACCOUNT_HEADER,
  type CommitSession,
  NAMESPACE_HEADER,
  type ObjectRecord,
  ORIGINAL_FILENAME_HEADER,
  quotaExceeded,
  quotaOf,
  ServiceError,
  STORING_MS,
  type UploadedFile,
  type Usage,
} from "@svc/contracts";
import {
  type InnerClient,
  type InnerRequest,
  type InnerResponse,
  innerError,
  jsonAnswer,
  retry,
} from "@svc/service-kit";

export interface FileAddress {
  session: string;
  file: string;
}

export interface CallContext {
  requestId: string;
  signal?: AbortSignal;
}

/** A commit flushes all bytes of a form to disk, which may be several GB. */
const COMMIT_TIMEOUT_MS = 10 * 60_000;
const COMMIT_ATTEMPTS = 4;
const FIRST_PAUSE_MS = 250;

const pathOf = ({ session, file }: FileAddress) => `/sessions/${session}/objects/${file}`;
/** Codes of the file server that have the same meaning for our caller. All others are internal. */
const SHARED_CODES = new Set([
  "file_not_found",
  "file_too_large",
  "range_not_satisfiable",
  "store_unavailable",
]);

export class FileStorage {
  readonly #client: InnerClient;

  constructor(client: InnerClient) {
    this.#client = client;
  }

  async stage(
    { session, file }: FileAddress,
    content: NonNullable<InnerRequest["body"]>,
    { filename, contentType, account }: { filename: string; contentType: string; account: string },
    { requestId }: CallContext,
  ): Promise<void> {
    await this.#json({
      method: "PUT",
      path: `/sessions/${session}/pending/${file}`,
      timeoutMs: STORING_MS.answer,
      requestId,
      headers: {
        "content-type": contentType,
        [ORIGINAL_FILENAME_HEADER]: encodeURIComponent(filename),
        [ACCOUNT_HEADER]: account,
      },
      body: content,
    });
  }

  /**
   * Makes the files visible. Retries while it is not known whether they are stored, as a repeated commit gives the same answer. If it
   * finally throws `storage_unavailable`, the outcome is still unknown.
   */
  async commit(session: string, commit: CommitSession, { requestId }: CallContext): Promise<UploadedFile[]> {
    const end = performance.now() + COMMIT_TIMEOUT_MS;
    const ask = () =>
      this.#json<{ files: UploadedFile[] }>({
        method: "POST",
        path: `/sessions/${session}/commit`,
        requestId,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(commit),
        timeoutMs: COMMIT_TIMEOUT_MS,
      });
    const { files } = await retry(ask, (error, failures) => {
      const isUnknown = error instanceof ServiceError && error.code === "storage_unavailable";
      if (!isUnknown || failures >= COMMIT_ATTEMPTS || performance.now() >= end) return undefined;
      return FIRST_PAUSE_MS * 2 ** (failures - 1);
    });
    return files;
  }

  async discard(session: string, account: string, { requestId }: CallContext): Promise<void> {
    await this.#json({
      method: "DELETE",
      path: `/sessions/${session}/pending`,
      requestId,
      headers: { [ACCOUNT_HEADER]: account },
    });
  }

  /** The answer to a GET or HEAD, with status 200, 206 or 304. The caller reads or destroys its body. */
  async download(
    method: "GET" | "HEAD",
    address: FileAddress,
    namespace: string,
    headers: Record<string, string>,
    context: CallContext,
  ): Promise<InnerResponse> {
    const response = await this.#client.send({
      method,
      path: pathOf(address),
      ...context,
      headers: { ...headers, [NAMESPACE_HEADER]: namespace },
    });
    if (response.statusCode < 300 || response.statusCode === 304) return response;
    if (method === "HEAD" && response.statusCode === 404) throw new ServiceError("file_not_found");
    throw await asOurs(response);
  }

  async metadata<T>(address: FileAddress, namespace: string, { requestId }: CallContext): Promise<T> {
    return this.#json<T>({
      method: "GET",
      path: `${pathOf(address)}/metadata`,
      requestId,
      headers: { [NAMESPACE_HEADER]: namespace },
    });
  }

  /** The record of an object in any namespace; undefined when there is no such object. */
  async record(address: FileAddress, { requestId }: CallContext): Promise<ObjectRecord | undefined> {
    try {
      return await this.#json<ObjectRecord>({ method: "GET", path: `${pathOf(address)}/record`, requestId });
    } catch (error) {
      if (error instanceof ServiceError && error.code === "file_not_found") return undefined;
      throw error;
    }
  }

  async list<T>(session: string, namespace: string, detail: string, { requestId }: CallContext): Promise<T> {
    return this.#json<T>({
      method: "GET",
      path: `/sessions/${session}/objects?detail=${detail}`,
      requestId,
      headers: { [NAMESPACE_HEADER]: namespace },
    });
  }

  /** The usage of a user's files, or of the states of a user's sessions. */
  async usage(account: string, { requestId }: CallContext): Promise<Usage> {
    return this.#json<Usage>({
      method: "GET",
      path: "/usage",
      requestId,
      headers: { [ACCOUNT_HEADER]: account },
    });
  }

  async delete(address: FileAddress, namespace: string, { requestId }: CallContext): Promise<void> {
    await this.#json({
      method: "DELETE",
      path: pathOf(address),
      requestId,
      headers: { [NAMESPACE_HEADER]: namespace },
    });
  }

  async #json<T>(call: InnerRequest): Promise<T> {
    return this.#client.whole(call, async (response) => {
      if (response.statusCode !== 200) throw await asOurs(response);
      return this.#client.read(response, (answer) => jsonAnswer<T>(answer));
    });
  }
}

/** Maps an error answer of the file server to ours. Refusals that our own calls caused are hidden from the caller. */
async function asOurs(response: InnerResponse): Promise<ServiceError> {
  const contentRange = response.headers["content-range"];
  const error = await innerError(response);
  const quota = quotaOf(error);
  if (quota !== undefined) return quotaExceeded(quota, error.cause);
  if (SHARED_CODES.has(error.code)) {
    return new ServiceError(error.code, undefined, {
      cause: error.cause,
      ...(typeof contentRange === "string" ? { headers: { "content-range": contentRange } } : {}),
    });
  }
  const code = response.statusCode === 503 ? "storage_unavailable" : "internal_error";
  return new ServiceError(code, undefined, { cause: `${error.code}: ${String(error.cause)}` });
}
