/**
 * A client of the public API, limited to what the command line needs. Every failure becomes a Problem that says what to do.
 */

import { type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { Readable } from "node:stream";
import { buffer, json, text } from "node:stream/consumers";
import type { ReadableStream } from "node:stream/web";
import { readEvents } from "svc-client/sse";
import { Problem, USAGE_EXIT_CODE } from "./problem.ts";
import { serviceAddress } from "./service-address.ts";

export interface UploadedFile {
  id: string;
  name: string;
  storage_session_id: string;
}

export interface OutputFile extends UploadedFile {
  inherited?: boolean;
}

export interface ExecResult {
  session_id: string;
  stdout: string;
  stderr: string;
  files: OutputFile[];
  code: number;
  signal: string | null;
  message: string | null;
  status: string | null;
  wall_time: number;
  files_omitted?: { name: string; reason: string }[];
  files_omitted_count?: number;
  /** Absent when the service keeps no sessions. */
  session_state_persisted?: boolean;
  session_state_restore_failed?: boolean;
  session_state_conflict?: boolean;
}

export interface ExecRequest {
  lang: string;
  code: string;
  args?: string[];
  stdin?: string;
  files?: { id: string; storage_session_id: string; name: string }[];
  run_timeout?: number;
  runtime_session_hint?: string;
}

/** The headers of a JWT or an API key. */
export function credentialsOf(token: string | undefined): { authorization?: string } {
  if (token === undefined) return {};
  if (/^[\x21-\x7e]+$/.test(token)) return { authorization: `Bearer ${token}` };
  throw new Problem("the token holds characters that no token has", undefined, USAGE_EXIT_CODE);
}

/** Resolves when the receiver is ready for more output. */
export type TellOutput = (stream: "stdout" | "stderr", text: string) => Promise<void>;

interface Output {
  text: string;
}

export class Client {
  readonly #base: string;
  readonly #credentials: { authorization?: string };
  readonly #whenUnreachable: string;

  /**
   * `address`: with or without scheme and /v1. `token`: a JWT or an API key. `whenUnreachable`: advice for a service that
   * does not answer.
   */
  constructor(
    address: string,
    { token, whenUnreachable }: { token?: string | undefined; whenUnreachable: string },
  ) {
    this.#whenUnreachable = whenUnreachable;
    this.#base = `${serviceAddress(address)}/v1`;
    this.#credentials = credentialsOf(token);
  }

  async exec(request: ExecRequest): Promise<ExecResult> {
    return (await json(await this.#request("POST", "/exec", bodyOf(request)))) as ExecResult;
  }

  /**
   * Like `exec`, but passes on the program's output as it arrives. When the service does not stream, the output is passed on
   * at the end.
   */
  async follow(request: ExecRequest, tell: TellOutput): Promise<ExecResult> {
    const answer = await this.#request("POST", "/exec", bodyOf(request), EVENTS_OR_JSON);
    if (answer.headers["content-type"]?.startsWith(EVENT_STREAM)) return this.#followed(answer, tell);
    const result = (await json(answer)) as ExecResult;
    await tell("stdout", result.stdout);
    await tell("stderr", result.stderr);
    return result;
  }

  async #followed(answer: IncomingMessage, tell: TellOutput): Promise<ExecResult> {
    try {
      for await (const { event, data } of readEvents(bytesOf(answer))) {
        if (event === "stdout" || event === "stderr") await tell(event, (JSON.parse(data) as Output).text);
        else if (event === "result") return JSON.parse(data) as ExecResult;
        else if (event === "error") throw refusalOf("after its start", data, undefined);
      }
    } catch (error) {
      if (error instanceof Problem) throw error;
      throw new Problem(`the answer of ${this.#base} broke off (${(error as Error).message})`);
    }
    throw new Problem(`the answer of ${this.#base} broke off`);
  }

  async upload(files: readonly { name: string; content: Blob }[]): Promise<UploadedFile[]> {
    const form = new FormData();
    form.set("kind", "user");
    for (const file of files) form.append("file", file.content, file.name);
    const answer = (await json(await this.#request("POST", "/upload", new Response(form)))) as {
      storage_session_id: string;
      files: UploadedFile[];
    };
    return answer.files.map((file) => ({ ...file, storage_session_id: answer.storage_session_id }));
  }

  async download(file: UploadedFile): Promise<Uint8Array> {
    return buffer(await this.#request("GET", `/download/${file.storage_session_id}/${file.id}`));
  }

  /**
   * Uses node:http because fetch has a time limit of its own and refuses some ports. Here the service's deadlines decide.
   */
  #request(
    method: string,
    path: string,
    body?: Response,
    more: { accept?: string } = {},
  ): Promise<IncomingMessage> {
    const type = body?.headers.get("content-type");
    const headers = { ...this.#credentials, ...more, ...(type ? { "content-type": type } : {}) };
    const request = this.#base.startsWith("https:") ? overHttps : overHttp;
    return new Promise((resolve, reject) => {
      const sent = request(`${this.#base}${path}`, { method, headers, agent: false }, (response) => {
        if (response.statusCode === 200) resolve(response);
        else this.#refusal(response).then(reject, reject);
      });
      sent.once("error", (error) => reject(this.#unreachable(error)));
      if (body?.body) Readable.fromWeb(body.body as ReadableStream<Uint8Array>).pipe(sent);
      else sent.end();
    });
  }

  async #refusal(response: IncomingMessage): Promise<Problem> {
    const problem = await refusal(response);
    if (response.statusCode !== 401) return problem;
    return new Problem(problem.message, this.#credentials.authorization ? NO_SUCH_TOKEN : NEEDS_TOKEN);
  }

  #unreachable(cause: NodeJS.ErrnoException): Problem {
    const reason = cause.code ?? cause.message;
    return new Problem(`no service answers at ${this.#base} (${reason})`, this.#whenUnreachable);
  }
}

const bytesOf = (answer: IncomingMessage) => Readable.toWeb(answer) as globalThis.ReadableStream<Uint8Array>;

const EVENT_STREAM = "text/event-stream";
const EVENTS_OR_JSON = { accept: `${EVENT_STREAM}, application/json;q=0.9` };

const bodyOf = (request: ExecRequest) =>
  new Response(new Blob([JSON.stringify(request)], { type: "application/json" }));

const NEEDS_TOKEN = "Pass --token TOKEN or set SVC_TOKEN: a JWT or an API key (docs/authentication.md).";
const NO_SUCH_TOKEN =
  "The token was not accepted: it may be wrong, expired, or for another service. The log of the API says which.";

async function refusal(response: IncomingMessage): Promise<Problem> {
  return refusalOf(response.statusCode ?? 0, await text(response), response.headers["retry-after"]);
}

/** `when`: the HTTP status, or a phrase that replaces it when there is no status. */
function refusalOf(when: number | string, body: string, retryAfter: string | undefined): Problem {
  try {
    const { error, message, details } = JSON.parse(body) as {
      error: string;
      message: string;
      details?: { path: string; problem: string }[];
    };
    const lines = Array.isArray(details) ? details.map(({ path, problem }) => `  ${path}: ${problem}`) : [];
    if (retryAfter !== undefined) lines.push(`Try again in ${retryAfter} s.`);
    return new Problem(`${message} (${when} ${error})`, lines.length > 0 ? lines.join("\n") : undefined);
  } catch {
    return new Problem(
      `the service answered ${when}: ${body.slice(0, 200)}`,
      "This is no answer of svc: a proxy may have given it, or --url is the address of something else.",
    );
  }
}
