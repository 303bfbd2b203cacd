/** The service by its public API over HTTP. Answers are read to a bound; a call that nobody waits for any more is broken off. */
import type { ExecResponse, LanguageInfo } from "@svc/contracts";
import { readBounded } from "./bounded-body.ts";
import { refusalOf, unreachable } from "./refusal.ts";
import { resultOf } from "./run-events.ts";
import {
  type DescribedFile,
  type KeptSession,
  type Program,
  type Service,
  ServiceRefusal,
  type SessionFile,
} from "./service.ts";

export interface HttpServiceOptions {
  /** Address of the API without /v1. */
  baseUrl: string;
  /** Of every request: credentials, a request id. */
  headers?: Readonly<Record<string, string>>;
  /** What a person can do when nothing answers there. */
  whenUnreachable?: string;
}

/** Of an answer in JSON, more than any has. */
const MAX_JSON_BYTES = 32 * 2 ** 20;

interface Call {
  method?: "GET" | "POST";
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | FormData;
  signal: AbortSignal;
}

export function httpService({ baseUrl, headers = {}, whenUnreachable }: HttpServiceOptions): Service {
  const base = `${baseUrl}/v1`;
  const send = async ({ method = "GET", path, body, signal, ...call }: Call): Promise<Response> => {
    const init = { method, headers: { ...headers, ...call.headers }, signal };
    const response = await fetch(`${base}${path}`, {
      ...init,
      ...(body === undefined ? {} : { body }),
    }).catch((error: unknown) => {
      throw signal.aborted ? error : unreachable(base, error, whenUnreachable);
    });
    if (response.ok) return response;
    throw refusalOf(response.status, response.headers, await readBounded(response, MAX_JSON_BYTES, ""));
  };
  const json = async <T>(call: Call): Promise<T> => {
    const bytes = await readBounded(await send(call), MAX_JSON_BYTES, "The answer of the service");
    try {
      return JSON.parse(new TextDecoder().decode(bytes)) as T;
    } catch (cause) {
      throw new ServiceRefusal(`What answers at ${base} is not this service.`, undefined, { cause });
    }
  };
  return {
    run: async (program, signal, onOutput) => {
      const response = await send({
        method: "POST",
        path: "/exec",
        headers: { "content-type": "application/json", accept: "text/event-stream" },
        body: JSON.stringify(requestOf(program)),
        signal,
      });
      return resultOf(response, onOutput) as Promise<ExecResponse>;
    },
    upload: async (name, content, signal) => {
      const body = new FormData();
      body.append("file", new Blob([content]), name);
      const answer = await json<Uploaded>({ method: "POST", path: "/upload", body, signal });
      const [file] = answer.files;
      if (file === undefined) throw new ServiceRefusal("The file was not stored.");
      const { id, size, contentType } = file;
      return { id, session_id: answer.storage_session_id, name: file.name, size, content_type: contentType };
    },
    download: async ({ id, session_id }, maxBytes, signal) =>
      readBounded(
        await send({ path: `/download/${encodeURIComponent(session_id)}/${encodeURIComponent(id)}`, signal }),
        maxBytes,
        "The file",
      ),
    filesOf: async (session, signal) =>
      (
        await json<Listed[]>({
          path: `/files/${encodeURIComponent(session)}?detail=normalized`,
          signal,
        })
      ).map(described),
    sessions: async (signal) => {
      try {
        return (await json<{ sessions: KeptSession[] }>({ path: "/sessions", signal })).sessions;
      } catch (error) {
        if (error instanceof ServiceRefusal && error.code === "not_found") return [];
        throw error;
      }
    },
    sessionFiles: async (id, signal) =>
      (await json<{ files: SessionFile[] }>({ path: `/sessions/${encodeURIComponent(id)}/files`, signal }))
        .files,
    sessionFile: async (id, name, maxBytes, signal) =>
      readBounded(
        await send({
          path: `/sessions/${encodeURIComponent(id)}/file?name=${encodeURIComponent(name)}`,
          signal,
        }),
        maxBytes,
        "The file",
      ),
    languages: async (signal) =>
      (await json<{ languages: LanguageInfo[] }>({ path: "/languages", signal })).languages,
  };
}

interface Uploaded {
  storage_session_id: string;
  files: { id: string; name: string; size: number; contentType: string }[];
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

/** As POST /v1/exec takes it. What is undefined is left out. */
function requestOf({ language, code, files, args, stdin, timeout_ms, session }: Program): object {
  return {
    lang: language,
    code,
    args,
    stdin,
    run_timeout: timeout_ms,
    runtime_session_hint: session,
    files: files?.map((file) => {
      if (!("session_id" in file)) return file;
      return { id: file.id, storage_session_id: file.session_id, name: file.name };
    }),
  };
}
