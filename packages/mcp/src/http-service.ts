/**
 * The service through its public API. It uses the project's client, and its own requests for what the client does not offer. Its own
 * requests read bytes up to a bound. A call that nobody waits for any more is aborted. There are no automatic retries: the model is
 * told when to try again.
 */
import { type InputFile, Svc, SvcError } from "svc-client";
import { base64Bytes } from "./base64.ts";
import { type Held, readBounded } from "./bounded-body.ts";
import { refusalOf, refused } from "./refusal.ts";
import {
  type DescribedFile,
  type InlineFile,
  type Program,
  type Service,
  ServiceRefusal,
  type StoredFile,
} from "./service.ts";

export interface HttpServiceOptions {
  /** Address of the API without /v1. */
  baseUrl: string;
  /** Headers of every request: credentials, a request id. */
  headers?: Readonly<Record<string, string>>;
  /** Advice for a person when the service cannot be reached. */
  whenUnreachable?: string;
}

/** Maximum size of a list in JSON, or of an error. */
const MAX_LIST_BYTES = 8 * 2 ** 20;
const LOST = "The connection to the service was lost before its answer was complete.";

export function httpService({ baseUrl, headers = {}, whenUnreachable = "" }: HttpServiceOptions): Service {
  // The service never redirects. A redirect by a proxy, such as to a login page, is no response of the service.
  const withHeaders: typeof fetch = (url, init) =>
    fetch(url, {
      redirect: "manual",
      ...init,
      headers: { ...headers, ...(init?.headers as Record<string, string>) },
    });
  const svc = new Svc({ baseUrl, fetch: withHeaders, maxRetries: 0 });
  const asked = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      throw error instanceof SvcError ? refused(error, whenUnreachable) : error;
    }
  };
  const bytesAt = async (
    path: string,
    maxBytes: number,
    signal: AbortSignal,
    held: Held = "file",
  ): Promise<Uint8Array> => {
    const refuse = (said: string) => (cause: unknown) => {
      signal.throwIfAborted();
      throw cause instanceof ServiceRefusal ? cause : new ServiceRefusal(said, undefined, { cause });
    };
    const away = `The service at ${baseUrl} cannot be reached. ${whenUnreachable}`;
    const response = await withHeaders(`${baseUrl}/v1${path}`, { signal }).catch(refuse(away.trim()));
    if (response.ok) return readBounded(response, maxBytes, held).catch(refuse(LOST));
    const body = await readBounded(response, MAX_LIST_BYTES, "answer").catch(refuse(LOST));
    throw refusalOf(response.status, body);
  };
  return {
    run: (program, signal, onOutput) => asked(runOn(svc, program, signal, onOutput)),
    upload: async (name, content, signal) => {
      const file = await asked(svc.upload(new Blob([content]), { name, signal }));
      const { id, storage_session_id: session_id, size, contentType: content_type } = file;
      return { id, session_id, name: file.name, size, content_type };
    },
    download: ({ id, session_id }, maxBytes, signal) =>
      bytesAt(`/download/${encodeURIComponent(session_id)}/${encodeURIComponent(id)}`, maxBytes, signal),
    filesOf: async (session, signal) => {
      const path = `/files/${encodeURIComponent(session)}?detail=normalized`;
      const bytes = await bytesAt(path, MAX_LIST_BYTES, signal, "answer");
      return (JSON.parse(new TextDecoder().decode(bytes)) as Listed[]).map(described);
    },
    sessions: async (signal) => {
      try {
        return await asked(svc.sessions.list({ signal }));
      } catch (error) {
        if (error instanceof ServiceRefusal && error.code === "not_found") return [];
        throw error;
      }
    },
    sessionFiles: (id, signal) => asked(svc.sessions.files(id, { signal })),
    sessionFile: (id, name, maxBytes, signal) =>
      bytesAt(`/sessions/${encodeURIComponent(id)}/file?name=${encodeURIComponent(name)}`, maxBytes, signal),
    languages: (signal) => asked(svc.languages({ signal })),
  };
}

/** Streams even if nobody asked for progress, so that the connection is never silent for long. */
const runOn = async (
  svc: Svc,
  { timeout_ms, session, files, language, code, args, stdin }: Program,
  signal: AbortSignal,
  onOutput: Parameters<Service["run"]>[2],
): ReturnType<Service["run"]> => {
  const program = {
    language,
    code,
    args: args === undefined ? null : [...args],
    stdin: stdin ?? null,
    run_timeout: timeout_ms ?? null,
    // The generated types allow any value; the service expects a string.
    ...(session === undefined ? {} : { runtime_session_hint: session as never }),
    files: (files ?? []).map(inputOf),
  };
  for await (const event of svc.stream(program, { signal })) {
    if (event.type === "result") return event.result;
    if (event.type === "stdout" || event.type === "stderr") onOutput(event.type, event.text);
  }
  throw new ServiceRefusal("The answer of the service broke off before the run's result.");
};

function inputOf(file: StoredFile | InlineFile, at: number): InputFile {
  if ("session_id" in file) return { id: file.id, storage_session_id: file.session_id, name: file.name };
  const { name, content, encoding } = file;
  return { name, content: encoding === "base64" ? base64Bytes(content, `files[${at}].content`) : content };
}

interface Listed {
  id: string;
  name: string;
  storage_session_id: string;
  size: number;
  contentType: string;
}

const described = ({ id, storage_session_id, name, size, contentType }: Listed): DescribedFile => ({
  id,
  session_id: storage_session_id,
  name,
  size,
  content_type: contentType,
});
