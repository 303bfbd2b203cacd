/** What the command line needs of the public API. Every failure becomes a Problem that says what to do. */
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { Problem } from "./problem.ts";

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
}

export interface ExecRequest {
  lang: string;
  code: string;
  args?: string[];
  stdin?: string;
  files?: { id: string; storage_session_id: string; name: string }[];
  run_timeout?: number;
}

export class Client {
  readonly #base: string;

  /** `base`: address with or without /v1. */
  constructor(base: string) {
    this.#base = `${base.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1`;
  }

  async exec(request: ExecRequest): Promise<ExecResult> {
    const answer = await this.#post("/exec", JSON.stringify(request));
    return JSON.parse(answer) as ExecResult;
  }

  async upload(files: readonly { name: string; content: Blob }[]): Promise<UploadedFile[]> {
    const form = new FormData();
    form.set("kind", "user");
    for (const file of files) form.append("file", file.content, file.name);
    const response = await this.#fetch("/upload", { method: "POST", body: form });
    const body = (await response.json()) as { storage_session_id: string; files: UploadedFile[] };
    return body.files.map((file) => ({ ...file, storage_session_id: body.storage_session_id }));
  }

  async download(file: UploadedFile): Promise<Uint8Array> {
    const response = await this.#fetch(`/download/${file.storage_session_id}/${file.id}`, {});
    return new Uint8Array(await response.arrayBuffer());
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(`${this.#base}${path}`, init);
    } catch (error) {
      throw this.#unreachable((error as Error).cause as NodeJS.ErrnoException | undefined);
    }
    if (response.ok) return response;
    throw refusal(response.status, response.headers.get("retry-after"), await response.text());
  }

  /** Without a time limit of its own: the service's deadlines decide, and they may be longer than those of fetch. */
  #post(path: string, body: string): Promise<string> {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const sent = request(`${this.#base}${path}`, { method: "POST", headers }, (response) => {
        const { statusCode = 0 } = response;
        text(response).then((answer) => {
          if (statusCode === 200) resolve(answer);
          else reject(refusal(statusCode, response.headers["retry-after"] ?? null, answer));
        }, reject);
      });
      sent.once("error", (error) => reject(this.#unreachable(error)));
      sent.end(body);
    });
  }

  #unreachable(cause: NodeJS.ErrnoException | undefined): Problem {
    const reason = cause?.code ?? cause?.message ?? "no connection";
    return new Problem(`no service answers at ${this.#base} (${reason})`, "Start one with: ./svc up -d");
  }
}

function refusal(status: number, retryAfter: string | null, body: string): Problem {
  try {
    const { error, message, details } = JSON.parse(body) as {
      error: string;
      message: string;
      details?: { path: string; problem: string }[];
    };
    const lines = Array.isArray(details) ? details.map(({ path, problem }) => `  ${path}: ${problem}`) : [];
    if (retryAfter !== null) lines.push(`Try again in ${retryAfter} s.`);
    return new Problem(`${message} (${status} ${error})`, lines.length > 0 ? lines.join("\n") : undefined);
  } catch {
    return new Problem(`the service answered ${status}: ${body.slice(0, 200)}`);
  }
}
