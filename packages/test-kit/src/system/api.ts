/**
 * The public API as a client sees it, for tests: every call answers status, headers and bytes as they came, and the
 * short forms throw with the body when the answer is no 200. An answer that the OpenAPI document does not name throws.
 * Knows nothing of the system behind the address.
 */
import type { ExecResponse, FileRef, OutputFile, UploadedFile } from "@svc/contracts";
import { slow } from "../jail/slowness.ts";
import { expectDocumented } from "./conformance.ts";

export interface ErrorBody {
  error: string;
  message: string;
  request_id: string;
  details?: { path: string; problem: string }[];
}

export interface UploadAnswer {
  message: string;
  storage_session_id: string;
  files: UploadedFile[];
}

export interface BatchAnswer extends Omit<UploadAnswer, "files"> {
  files: (UploadedFile | { status: "error"; filename: string; error: string })[];
  succeeded: number;
  failed: number;
}

export interface SendOptions {
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array<ArrayBuffer> | FormData;
  signal?: AbortSignal;
}

/** The body of POST /v1/exec as a test writes it: anything, so that wrong requests can be sent too. */
export type ExecInput = Readonly<Record<string, unknown>>;

export type FileContent = string | Uint8Array<ArrayBuffer>;

export interface FormPart {
  field?: string;
  /** With a file name: a file; without: a text field. */
  name?: string;
  content: FileContent;
  type?: string;
}

/** No call of a test waits longer than this. */
const CALL_MS = slow(115_000);

export class Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;

  constructor(status: number, headers: Headers, bytes: Buffer) {
    this.status = status;
    this.headers = headers;
    this.bytes = bytes;
  }

  get text(): string {
    return this.bytes.toString("utf8");
  }

  json<T>(): T {
    return JSON.parse(this.text) as T;
  }

  /** The body of an error answer. */
  get refusal(): ErrorBody {
    return this.json<ErrorBody>();
  }

  /** The body of a 200; throws with the whole answer when it is none. */
  ok<T>(): T {
    if (this.status !== 200) throw new Error(`answer ${this.status}: ${this.text.slice(0, 2000)}`);
    return this.json<T>();
  }
}

export class Api {
  readonly url: string;
  readonly #isProxied: boolean;
  readonly #isOtherVersion: boolean;

  /**
   * `url`: address of the service with /v1. `isProxied`: a page of HTML is the proxy's own answer, which nothing documents.
   * `isOtherVersion`: the service may be one that this document does not describe.
   */
  constructor(
    url: string,
    { isProxied = false, isOtherVersion = false }: { isProxied?: boolean; isOtherVersion?: boolean } = {},
  ) {
    this.url = url;
    this.#isProxied = isProxied;
    this.#isOtherVersion = isOtherVersion;
  }

  async send(method: string, path: string, { headers, body, signal }: SendOptions = {}): Promise<Answer> {
    const bound = AbortSignal.timeout(CALL_MS);
    const response = await fetch(`${this.url}${path}`, {
      method,
      ...(headers === undefined ? {} : { headers }),
      ...(body === undefined ? {} : { body }),
      signal: signal === undefined ? bound : AbortSignal.any([signal, bound]),
    });
    const answer = new Answer(response.status, response.headers, Buffer.from(await response.arrayBuffer()));
    const isOfProxy = this.#isProxied && answer.headers.get("content-type") === "text/html";
    if (!isOfProxy && !this.#isOtherVersion)
      expectDocumented(method, new URL(`${this.url}${path}`).pathname, answer);
    return answer;
  }

  post(path: string, body: unknown, options: Omit<SendOptions, "body"> = {}): Promise<Answer> {
    const headers = { "content-type": "application/json", ...options.headers };
    return this.send("POST", path, { ...options, headers, body: JSON.stringify(body) });
  }

  /** POST /v1/exec, whatever the answer is. */
  tryExec(input: ExecInput, options: Omit<SendOptions, "body"> = {}): Promise<Answer> {
    return this.post("/exec", input, options);
  }

  async exec(input: ExecInput, options: Omit<SendOptions, "body"> = {}): Promise<ExecResponse> {
    return (await this.tryExec(input, options)).ok<ExecResponse>();
  }

  form(path: string, parts: readonly FormPart[], options: Omit<SendOptions, "body"> = {}): Promise<Answer> {
    const form = new FormData();
    for (const { field = "file", name, content, type } of parts) {
      if (name === undefined) form.append(field, String(content));
      else form.append(field, new Blob([content], type === undefined ? {} : { type }), name);
    }
    return this.send("POST", path, { ...options, body: form });
  }

  /** Uploads files by name and content, with the form's fields behind them. */
  async upload(
    files: Readonly<Record<string, FileContent>>,
    fields: Readonly<Record<string, string>> = {},
  ): Promise<UploadedFile[]> {
    const parts = [
      ...Object.entries(files).map(([name, content]) => ({ name, content })),
      ...Object.entries(fields).map(([field, content]) => ({ field, content })),
    ];
    return (await this.form("/upload", parts)).ok<UploadAnswer>().files;
  }

  /** Uploads one file and answers the reference under which a program sees it by the same name. */
  async stage(
    name: string,
    content: FileContent,
    fields: Readonly<Record<string, string>> = {},
  ): Promise<FileRef> {
    const [file] = await this.upload({ [name]: content }, fields);
    return refTo(file as UploadedFile);
  }

  download(file: StoredFile, headers: Readonly<Record<string, string>> = {}, query = ""): Promise<Answer> {
    return this.send("GET", `${downloadPath(file)}${query}`, { headers });
  }

  /** The bytes of a stored file; throws unless it can be had. */
  async bytes(file: StoredFile): Promise<Buffer> {
    const answer = await this.download(file);
    if (answer.status !== 200) throw new Error(`download answered ${answer.status}: ${answer.text}`);
    return answer.bytes;
  }
}

export interface StoredFile {
  id: string;
  storage_session_id: string;
}

export const downloadPath = ({ id, storage_session_id }: StoredFile) =>
  `/download/${storage_session_id}/${id}`;
export const metadataPath = ({ id, storage_session_id }: StoredFile) =>
  `/sessions/${storage_session_id}/objects/${id}`;
export const deletePath = ({ id, storage_session_id }: StoredFile) => `/files/${storage_session_id}/${id}`;

/** A reference to a stored file, under its own name or another one. */
export function refTo(file: StoredFile & { name: string }, name = file.name): FileRef {
  return { id: file.id, storage_session_id: file.storage_session_id, name };
}

/** The output with this name; throws when there is none. */
export function output(answer: ExecResponse, name: string): OutputFile {
  const found = answer.files.find((file) => file.name === name);
  if (found === undefined) {
    throw new Error(
      `no output ${name} among ${answer.files.map((file) => file.name).join(", ") || "none"}\n${answer.stderr}`,
    );
  }
  return found;
}

export const ID = /^[A-Za-z0-9_-]{21}$/;
